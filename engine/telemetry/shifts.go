package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// shiftsEvery is how long the weights and shares of shifts count: they are compared for all policies.
const shiftsEvery = time.Minute

// shifts has the weights that policies ask for and the shares that were seen.
type shifts struct {
	term               *term
	weight, share, off *prometheus.Desc

	mu      sync.Mutex
	at      time.Time
	metrics []prometheus.Metric
}

func newShifts(t *term) *shifts {
	labels := []string{"policy", "destination", "mesh", "target"}
	return &shifts{
		term:   t,
		weight: prometheus.NewDesc("meshctl_policy_weight", "Share of the requests that a TrafficPolicy asks for, 0 to 1, for the callers of a mesh.", labels, nil),
		share:  prometheus.NewDesc("meshctl_policy_share", "Share of the requests of the last 15 minutes that the target of a shift got, 0 to 1; missing without requests.", labels, nil),
		off:    prometheus.NewDesc("meshctl_policy_off_weights", "1 for a target of a shift whose share is not as asked, and not by chance; see: meshctl help ShiftOffWeights.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *shifts) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.weight, s.share, s.off} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *shifts) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.at) >= shiftsEvery {
		s.at, s.metrics = now, s.compare(now)
	}
	for _, m := range s.metrics {
		out <- m
	}
}

// compare compares all shifts with what was counted.
func (s *shifts) compare(now time.Time) (out []prometheus.Metric) {
	var state *snapshot.State
	var report *traffic.Report
	if !s.term.with(now, func(c *traffic.Context, ring *traffic.Ring) {
		state, report = c.State, ring.Report(now, c, traffic.Query{By: traffic.ByAll, Window: traffic.Kept})
	}) {
		return nil
	}
	index := explain.WithEvidence(explain.New(state), &explain.Evidence{Report: report})
	for _, shift := range explain.Shifts(index) {
		for i := range shift.Targets {
			target := &shift.Targets[i]
			add := func(d *prometheus.Desc, value float64) {
				out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value,
					shift.Policy.Namespace+"/"+shift.Policy.Name, shift.Destination.Name, shift.Mesh.Name, target.Name()))
			}
			add(s.weight, target.Asked/100)
			if shift.Requests > 0 {
				add(s.share, target.Seen/100)
			}
			if target.Judged == explain.OffWeights {
				add(s.off, 1)
			}
		}
	}
	return out
}
