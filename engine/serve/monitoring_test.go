package serve

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// names are the metrics that were registered.
type names map[string]bool

// Register implements prometheus.Registerer.
func (n names) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() { c.Describe(descs); close(descs) }()
	for d := range descs {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())
		n[name[1]] = true
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (n names) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		_ = n.Register(c)
	}
}

// Unregister implements prometheus.Registerer.
func (n names) Unregister(prometheus.Collector) bool { return false }

// TestMonitoringNamesMetrics: each metric that a rule or a panel asks for is served.
func TestMonitoringNamesMetrics(t *testing.T) {
	t.Parallel()
	served := names{}
	newMetrics(served, "v")
	served.MustRegister(newStateCollector(nil, nil, nil, nil), newAnswers(nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var counting telemetry.Telemetry
	require.NoError(t, counting.Run(ctx, telemetry.Options{
		State: func() *snapshot.State { return nil }, Clusters: func() map[string]*rest.Config { return nil }, Metrics: served, Log: slog.New(slog.DiscardHandler),
	}))
	files, err := filepath.Glob("../../cmd/help/monitoring/*")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		used := regexp.MustCompile(`meshctl_[a-z_]+`).FindAllString(string(text), -1)
		require.Greater(t, len(used), 8, file)
		for _, name := range used {
			assert.True(t, served[strings.TrimSuffix(name, "_bucket")], "%s: no metric %s", file, name)
		}
	}
}

// TestAnswersAsMetrics counts policies by what is in force.
func TestAnswersAsMetrics(t *testing.T) {
	t.Parallel()
	state := engine.Translate(enginetest.World(enginetest.Size{Services: 4, Clusters: 2, FederateEvery: 1, Policies: 3}))
	registry := prometheus.NewRegistry()
	registry.MustRegister(newAnswers(func() *snapshot.State { return state }))
	families, err := registry.Gather()
	require.NoError(t, err)
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetGauge().GetValue()
		}
	}
	assert.InDelta(t, float64(len(state.Plan.Policies)), sums["meshctl_policies"], 0)
	registry = prometheus.NewRegistry()
	registry.MustRegister(newAnswers(func() *snapshot.State { return nil }))
	families, err = registry.Gather()
	require.NoError(t, err)
	assert.Empty(t, families, "before the first translation, nothing is known")
}
