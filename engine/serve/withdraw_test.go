package serve

import (
	"fmt"
	"net/http"
	"regexp"
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
	"github.com/meshctl/meshctl/engine/registration"
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

// anew is an object as a user would create it again.
func anew(o *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		metadata["namespace"] = o.GetNamespace()
	}
	if labels, ok, _ := unstructured.NestedMap(o.Object, "metadata", "labels"); ok {
		metadata["labels"] = labels
	}
	out := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": metadata, "spec": o.Object["spec"]}
	return &unstructured.Unstructured{Object: out}
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
	idle := func() bool {
		_, metrics := serve.get("/metrics")
		return strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-1"} 0`) &&
			strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-2"} 0`)
	}
	settled := func() { t.Helper(); until(t, "settled", idle) }
	var before []string
	stable := func() {
		t.Helper()
		until(t, "everything is written", func() bool {
			if len(routes(t, client)) != 3 || !idle() {
				return false
			}
			last := before
			before = specs(t, clusters)
			return slices.Equal(before, last)
		})
	}
	stable()
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

	t.Log("a control plane is deleted, and installed again")
	other := clientOf(t, clusters[1])
	istiod, err := other.Get(t.Context(), kube.Deployments(), "istio-system", "istiod")
	require.NoError(t, err)
	require.NoError(t, other.Delete(t.Context(), kube.Deployments(), "istio-system", "istiod"))
	issue := func(count string) func() bool {
		return func() bool {
			_, metrics := serve.get("/metrics")
			return strings.Contains(metrics, `meshctl_issues{code="ControlPlaneMissing",severity="warning"} 1`) == (count == "1")
		}
	}
	until(t, "it is missed", issue("1"))
	settled()
	assert.Equal(t, before, specs(t, clusters))
	require.NoError(t, other.Apply(t.Context(), anew(istiod)))
	until(t, "it is found", issue("0"))
	settled()
	assert.Equal(t, before, specs(t, clusters))

	t.Log("a Service and its workload are deleted, and created again")
	policies := func() []string {
		return slices.DeleteFunc(specs(t, clusters), func(s string) bool { return !strings.Contains(s, "AuthorizationPolicy") })
	}
	protected := policies()
	service, err := client.Get(t.Context(), kube.Services(), "bookinfo", "details")
	require.NoError(t, err)
	app, err := client.Get(t.Context(), kube.Deployments(), "bookinfo", "details-v1")
	require.NoError(t, err)
	known := func() bool {
		_, err := client.Get(t.Context(), kube.Discovery("workloads"), "gloo-mesh", "details-v1-bookinfo-cluster-1-deployment")
		return err == nil
	}
	until(t, "the workload is known", known)
	services := regexp.MustCompile(`meshctl_services\{cluster="cluster-1"\} \d+`)
	_, had := serve.get("/metrics")
	require.NoError(t, client.Delete(t.Context(), kube.Services(), "bookinfo", "details"))
	require.NoError(t, client.Delete(t.Context(), kube.Deployments(), "bookinfo", "details-v1"))
	until(t, "the loss is known", func() bool {
		_, now := serve.get("/metrics")
		return services.FindString(now) != services.FindString(had)
	})
	settled()
	assert.Equal(t, protected, policies())
	require.NoError(t, client.Apply(t.Context(), anew(app), anew(service)))
	until(t, "the workload is known again", known)
	settled()
	assert.Equal(t, protected, policies())

	weights := routes(t, client)
	t.Log("most Services of a cluster are deleted, and an administrator lets that pass")
	before = specs(t, clusters)
	for _, name := range []string{"reviews", "ratings"} {
		require.NoError(t, other.Delete(t.Context(), kube.Services(), "bookinfo", name))
	}
	until(t, "serve says so", func() bool {
		code, text := serve.get("/readyz")
		return code != http.StatusOK && strings.Contains(text, "nothing is deleted in cluster-2: ")
	})
	release := registration.ReleaseOptions{Name: "cluster-2", MgmtConfig: configOf(t, clusters[0])}
	until(t, "it is in the cluster's status", func() bool {
		held, err := registration.Release(t.Context(), release)
		require.NoError(t, err)
		code := regexp.MustCompile(`--code (\w+)`).FindStringSubmatch(held)
		if code == nil {
			return false
		}
		release.Code = code[1]
		return true
	})
	wrong := release
	wrong.Code = "00000000"
	_, err = registration.Release(t.Context(), wrong)
	require.ErrorContains(t, err, "has the code "+release.Code+", not 00000000")
	assert.Equal(t, protected, policies())
	_, err = registration.Release(t.Context(), release)
	require.NoError(t, err)
	until(t, "they go", func() bool { return !slices.Equal(protected, policies()) })
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	require.NoError(t, manifests.InstallBookinfo(t.Context(), other, "cluster-2"))
	until(t, "they are back", func() bool { return len(policies()) == len(protected) && slices.Equal(routes(t, client), weights) })
	stable()

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
	until(t, "it exists again", func() bool { return client.Apply(t.Context(), anew(crd)) == nil })
	frozen("deleted and created again")
	until(t, "its objects exist again", func() bool { return client.ApplyYAML(t.Context(), manifests.Policies()) == nil })
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	assert.Equal(t, before, specs(t, clusters))

	t.Log("a user deletes one policy")
	require.NoError(t, client.Delete(t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift"))
	until(t, "its route is gone", func() bool { return len(routes(t, client)) == 0 })
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	stable()

	t.Log("the management namespace is deleted")
	before = specs(t, clusters)
	require.NoError(t, client.Delete(t.Context(), corev1.SchemeGroupVersion.WithResource("namespaces"), "", "gloo-mesh"))
	until(t, "its objects are gone", gone)
	assert.Equal(t, before, specs(t, clusters))
	until(t, "serve says so", func() bool { return strings.Contains(serve.log.String(), "namespace gloo-mesh") })
	assert.Equal(t, before, specs(t, clusters))
}
