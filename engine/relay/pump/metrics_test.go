package pump

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples are the metrics of a Collector as text, without those whose value depends on the time.
func samples(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	families, err := r.Gather()
	require.NoError(t, err)
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue()
			if f.GetType().String() == "COUNTER" {
				value = m.GetCounter().GetValue()
			}
			out = append(out, fmt.Sprintf("%s{%s} %.0f", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	return out
}

// TestCollector: what goes up is received by the hub, and sent by the agent.
func TestCollector(t *testing.T) {
	t.Parallel()
	report := Numbers{
		Sent: Count{1, 2}, Received: Count{3, 4}, Resyncs: Resyncs{Full: 5, Delta: 6, Same: 7}, Rejects: 8, Resets: map[string]uint64{ReasonSilent: 9}, Open: true,
		Heard: time.Now().Add(-10 * time.Second),
	}
	series := Series{
		Cluster: "west", Streams: map[string]Numbers{Report: report, Desire: {}, Exchange: {Sent: Count{10, 11}}}, Complete: true,
		LagUp: 12 * time.Second, LagDown: 13 * time.Second, GenerationLag: 14, CertificateEnds: time.Now().Add(1000 * time.Second), Refusals: 15, Mismatches: 16,
	}
	hub := series
	hub.Hub = true
	got := samples(t, NewCollector(func() []Series { return []Series{hub} }))
	for _, want := range []string{
		"relay_push_clients_connected{cluster=west} 1",
		"relay_pull_clients_connected{cluster=west} 0",
		"relay_push_clients_warmed{cluster=west} 1",
		"meshctl_relay_bytes_total{cluster=west,direction=up,stream=report} 3",
		"meshctl_relay_bytes_total{cluster=west,direction=down,stream=report} 1",
		"meshctl_relay_frames_total{cluster=west,direction=up,stream=report} 4",
		"meshctl_relay_frames_total{cluster=west,direction=down,stream=exchange} 11",
		"meshctl_relay_resync_total{cluster=west,how=full,stream=report} 5",
		"meshctl_relay_resync_total{cluster=west,how=delta,stream=report} 6",
		"meshctl_relay_resync_total{cluster=west,how=same,stream=report} 7",
		"meshctl_relay_rejects_total{cluster=west,stream=report} 8",
		"meshctl_relay_stream_resets_total{cluster=west,reason=silent,stream=report} 9",
		"meshctl_relay_unacked_seconds{cluster=west,direction=up} 12",
		"meshctl_relay_unacked_seconds{cluster=west,direction=down} 13",
		"meshctl_relay_settled_generation_lag{cluster=west} 14",
		"meshctl_relay_certificate_expiry_seconds{cluster=west} 1000",
		"meshctl_relay_stale_seconds{cluster=west} 10",
		"meshctl_relay_refused_total{cluster=west} 15",
		"meshctl_relay_mismatches_total{cluster=west} 16",
	} {
		assert.Contains(t, got, want)
	}
	agent := samples(t, NewCollector(func() []Series { return []Series{series} }))
	assert.Contains(t, agent, "meshctl_relay_bytes_total{cluster=west,direction=up,stream=report} 1")
	assert.Contains(t, agent, "meshctl_relay_frames_total{cluster=west,direction=up,stream=exchange} 11")
	assert.False(t, slices.ContainsFunc(agent, func(s string) bool { return strings.Contains(s, "generation_lag") }), "only the hub knows")
}
