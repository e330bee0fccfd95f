package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// counter is a counter as it is now. Those of client_golang have labels of their own each, while most labels of edges are also those of others.
type counter struct {
	desc *prometheus.Desc
	// labels ascend by name, and are not changed.
	labels []*dto.LabelPair
	value  float64
}

// Desc implements prometheus.Metric.
func (c *counter) Desc() *prometheus.Desc { return c.desc }

// Write implements prometheus.Metric.
func (c *counter) Write(out *dto.Metric) error {
	out.Label, out.Counter = c.labels, &dto.Counter{Value: &c.value}
	return nil
}

// labels are those that were made, so that each is made once.
type labels map[labelOf]*dto.LabelPair

type labelOf struct{ name, value string }

func (l labels) one(name, value string) *dto.LabelPair {
	at := labelOf{name, value}
	p := l[at]
	if p == nil {
		p = &dto.LabelPair{Name: &at.name, Value: &at.value}
		l[at] = p
	}
	return p
}

// of are the labels with the values of an edge.
func (l labels) of(values []string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, len(values))
	for i, value := range values {
		out[i] = l.one(edgeLabels[i], value)
	}
	return out
}

// with are the labels of an edge and one of what was counted, whose name comes between.
func (l labels) with(edge []*dto.LabelPair, name, value string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(edge)+1)
	return append(append(append(out, edge[:sourceLabel]...), l.one(name, value)), edge[sourceLabel:]...)
}
