package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/envoy"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestProxiesAreToldThePlan joins two clusters and writes one policy after the
// other. After each, every proxy must be told what the Plan says, about
// everything, and nothing may have been refused on the way.
func TestProxiesAreToldThePlan(t *testing.T) {
	if testing.Short() {
		t.Skip("starts whole clusters")
	}
	w := newWorld(t)
	w.prove(t, "joined", manifests.VirtualMesh())
	w.prove(t, "demo", manifests.Policies())
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var plan *snapshot.Plan
	var told map[string]*envoy.Config
	for _, file := range files {
		documents, err := os.ReadFile(file)
		require.NoError(t, err)
		plan, told = w.prove(t, strings.TrimSuffix(filepath.Base(file), ".yaml"), documents)
	}
	w.doubt(t, plan, told)
}

// prove writes a case and waits until it is true.
func (w *world) prove(t *testing.T, name string, documents []byte) (*snapshot.Plan, map[string]*envoy.Config) {
	t.Helper()
	started := time.Now()
	objects, err := kube.Decode(documents)
	require.NoError(t, err, name)
	var policies []string
	for _, o := range objects {
		if o.GetKind() == "TrafficPolicy" || o.GetKind() == "AccessPolicy" {
			policies = append(policies, o.GetName())
		}
	}
	require.NoError(t, w.management.Apply(t.Context(), objects...), name)
	plan, told, count := w.converge(t, policies)
	assert.Greater(t, count, 100, "%s: the facts have gone", name)
	t.Logf("%s: %d facts in %d proxies hold after %s", name, count, len(told), time.Since(started).Round(10*time.Millisecond))
	return plan, told
}
