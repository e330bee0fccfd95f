package apply_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/mesh/ferrytest"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestThirdMesh brings a mesh that nothing else knows from a cluster's objects to
// an API server, beside an Istio.
func TestThirdMesh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(ferrytest.Crossing)
	folder := fstest.MapFS{}
	for _, name := range []string{"cluster-1/cluster.yaml", "management/policies.yaml"} {
		data, err := os.ReadFile("../mesh/ferrytest/testdata/" + name)
		require.NoError(t, err)
		folder[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), "NAMESPACE", w.namespace))}
	}
	in, unused, err := offline.Load(folder)
	require.NoError(t, err)
	require.Empty(t, unused)

	translator := engine.New(engine.Options{Meshes: []engine.Mesh{
		{Detector: istio.Detector(), Renderer: istio.Renderer{}},
		{Detector: ferrytest.Detector(), Renderer: ferrytest.Renderer{}},
	}})
	state := translator.Translate(in)
	var found []string
	for _, m := range state.Plan.Meshes {
		found = append(found, m.Dialect.Name+" "+m.Ref.Name)
	}
	assert.Equal(t, []string{"Ferry ferry-control-" + w.namespace + "-cluster-1", "Istio istiod-istio-system-cluster-1"}, found)

	for _, document := range strings.Split(string(folder["management/policies.yaml"].Data), "\n---\n") {
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
		kind, ok := snapshot.KindOf(o.GroupVersionKind().GroupKind())
		if !ok {
			continue // about the folder
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "generation")
		_, err := w.of(kind).Create(t.Context(), &o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	sink, _ := w.run()
	sink.Set("", w.config)
	sink.Set(one, w.config)
	sink.apply(state.Output)
	assert.Empty(t, sink.Failures())

	want := map[string]string{
		// Identities are those of all trust domains of the cluster, Istio's among them.
		"service-cart": "traffic careful, from cluster.local/web, from ferry.example/web", "service-web": "traffic elsewhere",
		"deny": "by all", "filters": "for careful", "external-legacy": "legacy.example.com", "virtual-cart": "cart.global",
		"egress-web": "cart." + w.namespace + ".svc.cluster.local, cart.global",
	}
	got := map[string]string{}
	list, err := w.of(ferrytest.Crossing).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		says, _, _ := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "says")
		got[list.Items[i].GetName()] = strings.Join(says, ", ")
	}
	assert.Equal(t, want, got)

	states := map[string]string{}
	for _, kind := range []snapshot.Kind{snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualDestination, snapshot.ServiceDependency} {
		list, err := w.of(kind).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			states[kind.String()+" "+list.Items[i].GetName()], _, _ = unstructured.NestedString(list.Items[i].Object, "status", "state")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		assert.Equal(t, "ACCEPTED", states[name], name)
	}
	assert.Len(t, states, 6)
}
