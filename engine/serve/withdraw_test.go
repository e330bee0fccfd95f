package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// specs are the generated objects of all clusters, with the UID and generation of each.
func specs(t *testing.T, clusters []*local.Cluster) []string {
	t.Helper()
	var out []string
	for _, c := range clusters {
		client := clientOf(t, c)
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
			if kind.Info().Group != "networking.istio.io" && kind.Info().Group != "security.istio.io" {
				continue
			}
			list, err := client.List(t.Context(), kind.GroupVersionResource(), "")
			require.NoError(t, err)
			for i := range list {
				if list[i].GetLabels()[snapshot.NetworkingOwnerLabel] != "" {
					out = append(out, fmt.Sprintf("%s %s %s/%s %s %d", c.Name(), kind, list[i].GetNamespace(), list[i].GetName(), list[i].GetUID(), list[i].GetGeneration()))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestWhatProtectsStays deletes what the objects of clusters follow from.
func TestWhatProtectsStays(t *testing.T) {
	t.Parallel()
	clusters := world(t, 2)
	client := clientOf(t, clusters[0])
	serve := start(t, configOf(t, clusters[0]), "serve")
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.VirtualMesh()))
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	var before []string
	until(t, "everything is written", func() bool {
		last := before
		before = specs(t, clusters)
		_, metrics := serve.get("/metrics")
		return len(routes(t, client)) == 3 && slices.Equal(before, last) &&
			strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-1"} 0`) &&
			strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-2"} 0`)
	})
	require.Greater(t, len(before), 20)
	// frozen waits until serve says that it changes nothing, and why.
	frozen := func(why string) {
		t.Helper()
		until(t, "serve says: "+why, func() bool {
			code, text := serve.get("/readyz")
			return code != http.StatusOK && strings.Contains(text, why)
		})
		assert.Equal(t, before, specs(t, clusters))
	}

	t.Log("a CustomResourceDefinition is deleted, and created again with its objects")
	crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	crd, err := client.Get(t.Context(), crds, "", crdName(snapshot.TrafficPolicy))
	require.NoError(t, err)
	require.NoError(t, client.Delete(t.Context(), crds, "", crd.GetName()))
	gone := func() bool {
		list, err := client.List(t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh")
		return err != nil || len(list) == 0
	}
	until(t, "its objects are gone", gone)
	frozen(crd.GetName() + " ")
	crd = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "metadata": map[string]any{"name": crd.GetName()}, "spec": crd.Object["spec"],
	}}
	until(t, "it exists again", func() bool { return client.Apply(t.Context(), crd) == nil })
	frozen("deleted and created again")
	until(t, "its objects exist again", func() bool { return client.ApplyYAML(t.Context(), manifests.Policies()) == nil })
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	assert.Equal(t, before, specs(t, clusters))

	t.Log("a user deletes one policy")
	require.NoError(t, client.Delete(t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift"))
	until(t, "its route is gone", func() bool { return len(routes(t, client)) == 0 })
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	until(t, "it is there again", func() bool { return len(routes(t, client)) == 3 })
	before = specs(t, clusters)

	t.Log("the management namespace is deleted")
	before = specs(t, clusters)
	require.NoError(t, client.Delete(t.Context(), corev1.SchemeGroupVersion.WithResource("namespaces"), "", "gloo-mesh"))
	until(t, "its objects are gone", gone)
	assert.Equal(t, before, specs(t, clusters))
	until(t, "serve says so", func() bool { return strings.Contains(serve.log.String(), "namespace gloo-mesh") })
	assert.Equal(t, before, specs(t, clusters))
}
