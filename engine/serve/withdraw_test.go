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
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// specs are the generated objects of all clusters, with the UID and generation of each.
func specs(t *testing.T, clusters []*local.Cluster) []string {
	t.Helper()
	var out []string
	for _, c := range clusters {
		client := clientOf(t, c)
		for _, kind := range istioWritten() {
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

// istioWritten are the kinds of Istio that are written to clusters.
func istioWritten() []snapshot.Kind {
	return slices.DeleteFunc(snapshot.Kinds(snapshot.ManagedSide, snapshot.Write), func(k snapshot.Kind) bool {
		return k.Info().Group != "networking.istio.io" && k.Info().Group != "security.istio.io"
	})
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

// protection is two clusters whose objects must stay while what they follow from is
// deleted.
type protection struct {
	*testing.T
	clusters []*local.Cluster
	// client is of the management cluster, other of the other one.
	client, other *kube.Client
	serve         *replica
	// before are the objects that stay.
	before []string
}

// strictSettings let little go at once.
const strictSettings = `
apiVersion: settings.mesh.gloo.solo.io/v1
kind: Settings
metadata: {name: settings, namespace: gloo-mesh}
spec: {withdrawals: {maxPercent: 20}}
`

// TestWhatProtectsStays deletes what the objects of clusters follow from.
func TestWhatProtectsStays(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	clusters := world(t, 2)
	p := &protection{T: t, clusters: clusters, client: clientOf(t, clusters[0]), other: clientOf(t, clusters[1])}
	p.serve = start(t, configOf(t, clusters[0]), "serve")
	p.ready()
	require.NoError(t, p.client.ApplyYAML(t.Context(), manifests.VirtualMesh()))
	require.NoError(t, p.client.ApplyYAML(t.Context(), manifests.Policies()))
	require.NoError(t, p.client.ApplyYAML(t.Context(), []byte(strictSettings)))
	p.stable()
	require.Greater(t, len(p.before), 20)
	t.Log("a control plane is deleted, and installed again")
	p.controlPlane()
	t.Log("a Service and its workload are deleted, and created again")
	p.service()
	t.Log("most Services of a cluster are deleted, and an administrator lets that pass")
	p.most()
	t.Log("a CustomResourceDefinition is deleted, and created again with its objects")
	p.definition()
	t.Log("a user deletes one policy")
	p.policy()
	t.Log("the management namespace is deleted")
	p.namespace()
}

// ready waits until serve is ready.
func (p *protection) ready() {
	p.Helper()
	until(p.T, "ready", func() bool { code, _ := p.serve.get("/readyz"); return code == http.StatusOK })
}

// idle reports whether nothing is about to be written.
func (p *protection) idle() bool {
	_, metrics := p.serve.get("/metrics")
	return strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-1"} 0`) &&
		strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-2"} 0`)
}

// stable waits until everything is written, and notes what that is.
func (p *protection) stable() {
	p.Helper()
	until(p.T, "everything is written", func() bool {
		if len(routes(p.T, p.client)) != 3 || !p.idle() {
			return false
		}
		last := p.before
		p.before = specs(p.T, p.clusters)
		return slices.Equal(p.before, last) && slices.Equal(namesOf(p.before), wanted(p.T, configOf(p.T, p.clusters[0])))
	})
}

// stays checks that nothing has changed.
func (p *protection) stays() {
	p.Helper()
	until(p.T, "settled", p.idle)
	assert.Equal(p, p.before, specs(p.T, p.clusters))
}

// frozen waits until serve says that it changes nothing, and why.
func (p *protection) frozen(why string) {
	p.Helper()
	until(p.T, "serve says: "+why, func() bool {
		code, text := p.serve.get("/readyz")
		return code != http.StatusOK && strings.Contains(text, why)
	})
	assert.Equal(p, p.before, specs(p.T, p.clusters))
}

// policies are the AuthorizationPolicies among the objects.
func (p *protection) policies() []string {
	p.Helper()
	return slices.DeleteFunc(specs(p.T, p.clusters), func(s string) bool { return !strings.Contains(s, "AuthorizationPolicy") })
}

// gone reports whether no TrafficPolicy is left.
func (p *protection) gone() bool {
	list, err := p.client.List(p.Context(), kube.Policies("trafficpolicies"), "gloo-mesh")
	return err != nil || len(list) == 0
}

func (p *protection) controlPlane() {
	istiod, err := p.other.Get(p.Context(), kube.Deployments(), "istio-system", "istiod")
	require.NoError(p, err)
	require.NoError(p, p.other.Delete(p.Context(), kube.Deployments(), "istio-system", "istiod"))
	issue := func(count string) func() bool {
		return func() bool {
			_, metrics := p.serve.get("/metrics")
			return strings.Contains(metrics, `meshctl_issues{code="ControlPlaneMissing",severity="warning"} 1`) == (count == "1")
		}
	}
	until(p.T, "it is missed", issue("1"))
	p.stays()
	require.NoError(p, p.other.Apply(p.Context(), anew(istiod)))
	until(p.T, "it is found", issue("0"))
	p.stays()
}

func (p *protection) service() {
	protected := p.policies()
	service, err := p.client.Get(p.Context(), kube.Services(), "bookinfo", "details")
	require.NoError(p, err)
	app, err := p.client.Get(p.Context(), kube.Deployments(), "bookinfo", "details-v1")
	require.NoError(p, err)
	services := regexp.MustCompile(`meshctl_services\{cluster="cluster-1"\} \d+`)
	_, had := p.serve.get("/metrics")
	require.NoError(p, p.client.Delete(p.Context(), kube.Services(), "bookinfo", "details"))
	require.NoError(p, p.client.Delete(p.Context(), kube.Deployments(), "bookinfo", "details-v1"))
	known := func() bool {
		_, now := p.serve.get("/metrics")
		return services.FindString(now) == services.FindString(had)
	}
	until(p.T, "the loss is known", func() bool { return !known() })
	until(p.T, "settled", p.idle)
	assert.Equal(p, protected, p.policies())
	require.NoError(p, p.client.Apply(p.Context(), anew(app), anew(service)))
	until(p.T, "they are known again", known)
	until(p.T, "settled", p.idle)
	assert.Equal(p, protected, p.policies())
}

func (p *protection) most() {
	protected, weights := p.policies(), routes(p.T, p.client)
	for _, name := range []string{"reviews", "ratings"} {
		require.NoError(p, p.other.Delete(p.Context(), kube.Services(), "bookinfo", name))
	}
	until(p.T, "serve says so", func() bool {
		code, text := p.serve.get("/readyz")
		return code != http.StatusOK && strings.Contains(text, "nothing is deleted in cluster-2: ")
	})
	release := registration.ReleaseOptions{Name: "cluster-2", MgmtConfig: configOf(p.T, p.clusters[0])}
	until(p.T, "it is in the cluster's status", func() bool {
		held, err := registration.Release(p.Context(), release)
		require.NoError(p, err)
		code := regexp.MustCompile(`--code (\w+)`).FindStringSubmatch(held)
		if code == nil {
			return false
		}
		release.Code = code[1]
		return true
	})
	wrong := release
	wrong.Code = "00000000"
	_, err := registration.Release(p.Context(), wrong)
	require.ErrorContains(p, err, "have the code "+release.Code+", not 00000000")
	assert.Equal(p, protected, p.policies())
	_, err = registration.Release(p.Context(), release)
	require.NoError(p, err)
	until(p.T, "they go", func() bool { return !slices.Equal(protected, p.policies()) })
	p.ready()
	require.NoError(p, manifests.InstallBookinfo(p.Context(), p.other, "cluster-2"))
	until(p.T, "they are back", func() bool {
		return len(p.policies()) == len(protected) && slices.Equal(routes(p.T, p.client), weights)
	})
	p.stable()
}

func (p *protection) definition() {
	crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	crd, err := p.client.Get(p.Context(), crds, "", crdName(snapshot.TrafficPolicy))
	require.NoError(p, err)
	require.NoError(p, p.client.Delete(p.Context(), crds, "", crd.GetName()))
	until(p.T, "its objects are gone", p.gone)
	p.frozen(crd.GetName() + " ")
	until(p.T, "it exists again", func() bool { return p.client.Apply(p.Context(), anew(crd)) == nil })
	p.frozen("deleted and created again")
	until(p.T, "its objects exist again", func() bool { return p.client.ApplyYAML(p.Context(), manifests.Policies()) == nil })
	p.ready()
	assert.Equal(p, p.before, specs(p.T, p.clusters))
}

func (p *protection) policy() {
	require.NoError(p, p.client.Delete(p.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift"))
	until(p.T, "its route is gone", func() bool { return len(routes(p.T, p.client)) == 0 })
	require.NoError(p, p.client.ApplyYAML(p.Context(), manifests.Policies()))
	p.stable()
}

func (p *protection) namespace() {
	p.before = specs(p.T, p.clusters)
	require.NoError(p, p.client.Delete(p.Context(), corev1.SchemeGroupVersion.WithResource("namespaces"), "", "gloo-mesh"))
	until(p.T, "its objects are gone", p.gone)
	assert.Equal(p, p.before, specs(p.T, p.clusters))
	until(p.T, "serve says so", func() bool { return strings.Contains(p.serve.log.String(), "namespace gloo-mesh") })
	assert.Equal(p, p.before, specs(p.T, p.clusters))
}
