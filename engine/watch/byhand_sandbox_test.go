package watch_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestNoLabelHidesAnObject: what the API server sends is all that is not ours, as labels
// come and go.
func TestNoLabelHidesAnObject(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions().
		Create(t.Context(), looseCRD(snapshot.VirtualService), metav1.CreateOptions{})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	services := client.Resource(snapshot.VirtualService.GroupVersionResource()).Namespace("default")
	ns := namespace(t, management)
	labels := func(owner, cluster string) map[string]string {
		return map[string]string{snapshot.NetworkingOwnerLabel: owner, snapshot.ClusterLabel: cluster}
	}
	create := func(name string, labels map[string]string) *unstructured.Unstructured {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hosts": []any{name}}}}
		o.SetGroupVersionKind(snapshot.VirtualService.Info().GroupVersionKind)
		o.SetName(name)
		o.SetLabels(labels)
		var made *unstructured.Unstructured
		waittest.NoError(t, name+" is created", func() (err error) {
			made, err = services.Create(t.Context(), o, metav1.CreateOptions{})
			return err
		})
		return made
	}
	create("a", nil)
	foreign := create("b", labels("another", "west"))
	ours := create("c", labels(ns, "west"))
	create("d", map[string]string{snapshot.NetworkingOwnerLabel: ns})

	w := start(t, management, watch.Options{Namespace: ns})
	w.Set("west", "", config, nil)
	reads := func(what string, names ...string) {
		t.Helper()
		w.until(what, func(i *snapshot.Input) bool {
			var have []string
			for _, o := range named(i, "west").OfMeshes[snapshot.VirtualService] {
				have = append(have, o.GetName())
			}
			return assert.ObjectsAreEqual(names, have)
		})
	}
	reads("the lists", "a", "b", "d")
	relabel := func(o *unstructured.Unstructured, labels map[string]string) {
		t.Helper()
		o.SetLabels(labels)
		_, err := services.Update(t.Context(), o, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	relabel(foreign, labels(ns, "west"))
	reads("b becomes ours", "a", "d")
	relabel(ours, labels(ns, "east"))
	reads("c is of another cluster", "a", "c", "d")
}
