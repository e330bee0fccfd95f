package proof

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	unnoticed := lies()
	for _, more := range []map[string]lie{filterLies(), federationLies(), externalLies(), virtualLies()} {
		maps.Copy(unnoticed, more)
	}
	prove := func(name string, documents []byte) {
		plan, told := w.prove(t, name, documents)
		unnoticed = w.doubt(t, name, plan, told, unnoticed)
	}
	prove("joined", manifests.VirtualMesh())
	prove("demo", manifests.Policies())
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	federation, err := filepath.Glob("testdata/federation/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, federation)
	for _, file := range append(files, federation...) {
		documents, err := os.ReadFile(file)
		require.NoError(t, err)
		prove(strings.TrimSuffix(filepath.Base(file), ".yaml"), documents)
	}
	assert.Empty(t, slices.Sorted(maps.Keys(unnoticed)), "lies that would not be noticed")
}

// resources of which the one that was written last must have been read: nothing
// that follows from them tells so.
var resources = map[string]schema.GroupVersionResource{
	"VirtualMesh": kube.Policies("virtualmeshes"),
	"Settings":    {Group: "settings.mesh.gloo.solo.io", Version: "v1", Resource: "settings"},
}

// prove writes a case and waits until it is true.
func (w *world) prove(t *testing.T, name string, documents []byte) (*snapshot.Plan, map[string]*envoy.Config) {
	t.Helper()
	started := time.Now()
	objects, err := kube.Decode(documents)
	require.NoError(t, err, name)
	require.NoError(t, w.management.Apply(t.Context(), objects...), name)
	var policies []string
	for _, o := range objects {
		switch o.GetKind() {
		case "TrafficPolicy", "AccessPolicy", "ServiceDependency", "VirtualDestination":
			policies = append(policies, o.GetName())
		case "VirtualMesh", "Settings":
			written, err := w.management.Get(t.Context(), resources[o.GetKind()], o.GetNamespace(), o.GetName())
			require.NoError(t, err, name)
			w.written[o.GetKind()] = written.GetGeneration()
		}
	}
	plan, told, count := w.converge(t, policies)
	assert.Greater(t, count, 100, "%s: the facts have gone", name)
	t.Logf("%s: %d facts in %d proxies hold after %s", name, count, len(told), time.Since(started).Round(10*time.Millisecond))
	return plan, told
}
