package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestChangedPolicies: a report names a policy for as long as numbers of the window may be from before it, and the next round notes it
// although nobody asks.
func TestChangedPolicies(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, f *fleet, of *Telemetry, _ *prometheus.Registry) {
		t.Helper()
		policy := enginetest.TrafficPolicy(1, 1, 0, time.Second)
		report, _, _ := ask(t, of, "?by=all")
		assert.Empty(t, report.Changed)
		input := enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1})
		input.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{policy}
		edited := time.Now()
		f.set(func() { f.state = engine.Translate(input) })
		time.Sleep(5 * time.Minute)
		report, _, _ = ask(t, of, "?by=all")
		if assert.Len(t, report.Changed, 1) {
			assert.Equal(t, snapshot.RefOf(snapshot.TrafficPolicy, policy), report.Changed[0].On)
			assert.WithinDuration(t, edited, report.Changed[0].Since, traffic.Point)
		}
		time.Sleep(11 * time.Minute)
		report, _, _ = ask(t, of, "?by=all")
		assert.Empty(t, report.Changed, "all that is counted came after it")
	})
}
