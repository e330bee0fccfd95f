package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// workerWith is a worker with Runnables that is not running.
func workerWith(t *testing.T, log *bytes.Buffer, list ...Runnable) *worker {
	t.Helper()
	o, err := Options{
		Management: &rest.Config{Host: "https://127.0.0.1:1"}, Log: slog.New(slog.NewTextHandler(log, nil)), Runnables: list,
	}.withDefaults()
	require.NoError(t, err)
	w, err := newWorker(o, "plane", nil, newMetrics(prometheus.NewRegistry(), "test"))
	require.NoError(t, err)
	return w
}

// gathered are the values of the counters and gauges about Runnables.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, family := range families {
		if name := family.GetName(); name == "sample" || strings.HasPrefix(name, "meshctl_companion") {
			out[name] = family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return out
}

// TestARunnableThatFailsIsStartedAgain: with an error, by itself and with a panic; what it
// registered is not in the way, and it is told at once that there is something to see.
func TestARunnableThatFailsIsStartedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Time
		var log bytes.Buffer
		ends := []func() error{
			func() error { return errors.New("broken disk") },
			func() error { return nil },
			func() error { panic("lost") },
		}
		w := workerWith(t, &log, Runnable{Name: "sample", Run: func(ctx context.Context, term LeaderContext) error {
			starts = append(starts, time.Now())
			assert.Equal(t, "plane", term.PlaneID)
			assert.Equal(t, "gloo-mesh", term.Namespace)
			term.Metrics.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "sample"}))
			<-term.Changed
			if n := len(starts); n <= len(ends) {
				return ends[n-1]()
			}
			<-ctx.Done()
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.runnables.run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, starts, 4)
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
			[]time.Duration{starts[1].Sub(starts[0]), starts[2].Sub(starts[1]), starts[3].Sub(starts[2])})
		assert.Equal(t, map[string]float64{"meshctl_companion_failures_total": 3, "sample": 0}, gathered(t, w.metrics))
		for _, said := range []string{"broken disk", "it ended by itself", "panic: lost", "runnable=sample"} {
			assert.Contains(t, log.String(), said)
		}
		cancel()
		<-ended
		assert.NotContains(t, gathered(t, w.metrics), "sample")
	})
}

// TestARunnableSeesTheLatest: many changes in a row are one signal, and nobody waits for it.
func TestARunnableSeesTheLatest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		terms := make(chan LeaderContext, 1)
		w := workerWith(t, &log, Runnable{Name: "sample", Run: func(ctx context.Context, term LeaderContext) error {
			terms <- term
			<-ctx.Done()
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.runnables.run(ctx) }()
		term := <-terms
		<-term.Changed
		assert.Nil(t, term.State())
		assert.Empty(t, term.Clusters())

		east := &rest.Config{Host: "https://east"}
		to := handler{w.clusters}
		to.Set(cluster.Connection{Name: "east", Config: east})
		to.Set(cluster.Connection{Name: "west", Config: &rest.Config{Host: "https://west"}})
		to.Set(cluster.Connection{Name: "west", Err: errors.New("no credential")})
		to.Set(cluster.Connection{Name: "north", Config: &rest.Config{Host: "https://north"}})
		to.Remove("north")
		state := &snapshot.State{Input: &snapshot.Input{}}
		w.loop.state.Store(state)
		for range 10 {
			w.loop.translated()
		}
		<-term.Changed
		assert.Same(t, state, term.State())
		assert.Equal(t, map[string]*rest.Config{"east": east}, term.Clusters())
		select {
		case <-term.Changed:
			assert.Fail(t, "one signal is enough")
		default:
		}
		cancel()
		<-ended
		w.clusters.Source.Remove("east")
		w.clusters.Source.Remove("west")
	})
}

// TestWithoutRunnablesNothingIsAsked: all methods work on none.
func TestWithoutRunnablesNothingIsAsked(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := workerWith(t, &log)
	assert.Nil(t, w.runnables)
	w.runnables.run(t.Context())
	w.runnables.notify()
	w.runnables.set("east", nil)
	w.runnables.remove("east")
}
