package telemetry

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestCountersOfEdges: the counters have all that was counted, with labels as client_golang would make them.
func TestCountersOfEdges(t *testing.T) {
	t.Parallel()
	labels := slices.Insert(slices.Clone(edgeLabels), sourceLabel, "reason", "response_class")
	assert.True(t, slices.IsSorted(labels), labels)
	h := newHubSide(t, 2)
	for range 3 {
		h.round()
	}
	pedantic := prometheus.NewPedanticRegistry()
	require.NoError(t, h.of.current.Load().register(pedantic))
	families, err := pedantic.Gather()
	require.NoError(t, err)
	want, got := map[string]uint64{}, map[string]uint64{}
	h.of.current.Load().ring.Totals(func(key traffic.Key, v *traffic.Values) {
		if key.Serves() {
			return
		}
		for name, m := range map[string]snapshot.Measure{
			"meshctl_requests_total 2xx": snapshot.Answered2xx, "meshctl_requests_total 5xx": snapshot.Answered5xx, "meshctl_request_retries_total ": snapshot.Retried,
			"meshctl_tcp_sent_bytes_total ": snapshot.SentBytes, "meshctl_tcp_received_bytes_total ": snapshot.ReceivedBytes,
		} {
			want[name+" from "+key.From.Name] += v.Of(m)
		}
	})
	named := func(m *dto.Metric, name string) string {
		for _, l := range m.GetLabel() {
			if l.GetName() == name {
				return l.GetValue()
			}
		}
		return ""
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if source := named(m, "source_workload"); source != "" {
				workload := source + "-" + named(m, "source_namespace") + "-" + named(m, "source_cluster") + "-deployment"
				got[f.GetName()+" "+named(m, "response_class")+" from "+workload] += uint64(m.GetCounter().GetValue())
			}
		}
	}
	require.Len(t, want, 5*200)
	assert.Equal(t, want, got)
}
