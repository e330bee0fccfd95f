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

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestProxiesMatchPlan joins two clusters and applies one case after the other.
// After each, all facts of the Plan must hold in every proxy, and no API server may
// have rejected an object.
func TestProxiesMatchPlan(t *testing.T) {
	shard.Only(t, shard.Proof)
	w := newEnvironment(t)
	undetected := mutations()
	for _, more := range []map[string]mutation{filterMutations(), federationMutations(), externalMutations(), virtualMutations()} {
		maps.Copy(undetected, more)
	}
	prove := func(name string, documents []byte) {
		plan, configs := w.prove(t, name, documents)
		w.askWhy(t, name, configs)
		undetected = w.undetected(t, name, plan, configs, undetected)
	}
	prove("joined", slices.Concat(manifests.VirtualMesh(), []byte("\n---\n"+sideDoor)))
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
	assert.Empty(t, slices.Sorted(maps.Keys(undetected)), "changes that would not be detected")
	for round := range randomWorlds {
		w.proveRandom(t, round)
	}
	assert.Greater(t, w.asked[explain.Allowed], 1000, "%v", w.asked)
	assert.Greater(t, w.asked[explain.Refused], 1000, "%v", w.asked)
	t.Logf("what why said, and proxies do: %v", w.asked)
}

// sideDoor names the namespace of a gateway that is not beside its control plane.
const sideDoor = `apiVersion: settings.mesh.gloo.solo.io/v1
kind: Settings
metadata: {name: settings, namespace: gloo-mesh}
spec: {discovery: {istio: {gatewayNamespaces: [{clusterName: cluster-2, namespace: edge}]}}}
`

// resources whose latest version must have been read before the Plan is used,
// because no object that follows from them shows that.
var resources = map[string]schema.GroupVersionResource{
	"VirtualMesh": kube.Policies("virtualmeshes"),
	"Settings":    {Group: "settings.mesh.gloo.solo.io", Version: "v1", Resource: "settings"},
}

// prove applies a case and waits until the proxies match the Plan.
func (w *environment) prove(t *testing.T, name string, documents []byte) (*snapshot.Plan, map[string]*envoy.Config) {
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
	plan, configs, count := w.converge(t, func(plan *snapshot.Plan) error { return accepted(plan, policies) })
	assert.Greater(t, count, 100, "%s: the facts have gone", name)
	t.Logf("%s: %d facts in %d proxies hold after %s", name, count, len(configs), time.Since(started).Round(10*time.Millisecond))
	return plan, configs
}
