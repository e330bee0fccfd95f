package policy

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

var (
	accessClusters = map[string]string{"one": "a", "two": "b", "three": "b"} // trust domains
	accessNames    = []string{"", "x", "y"}
)

// accessWorld has a workload under each of two accounts in each of two
// namespaces of three clusters, two of which share a trust domain.
func accessWorld() *environment {
	var found []*snapshot.Discovered
	for _, cluster := range []string{"one", "three", "two"} {
		d := &snapshot.Discovered{Cluster: cluster}
		mesh := &discoveryv1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: cluster, Namespace: "gloo-mesh"}}
		mesh.Spec.Istio = &discoveryv1.IstioMesh{TrustDomain: accessClusters[cluster]}
		mesh.Spec.Istio.Installation.Cluster = cluster
		d.Meshes = append(d.Meshes, mesh)
		for _, namespace := range accessNames[1:] {
			for _, account := range accessNames[1:] {
				w := &discoveryv1.Workload{ObjectMeta: metav1.ObjectMeta{Name: cluster + namespace + account, Namespace: "gloo-mesh"}}
				w.Spec.Mesh = commonv1.ObjectRef{Name: cluster, Namespace: "gloo-mesh"}
				w.Spec.Kubernetes = &discoveryv1.KubernetesWorkload{
					Controller:         commonv1.ClusterObjectRef{Name: account, Namespace: namespace, ClusterName: cluster},
					ServiceAccountName: account,
				}
				d.Workloads = append(d.Workloads, w)
			}
		}
		found = append(found, d)
	}
	env := &environment{inv: inventory.New(found, nil)}
	env.topology = virtualmesh.New(env.inv, nil, nil, virtualmesh.Scope{}, []*snapshot.Dialect{istio.Renderer{}.Dialect()}, virtualmesh.Addresses{}, virtualmesh.TrustFacts{}, nil, nil)
	return env
}

// lets reports whether a rule lets a certificate in, as Istio would.
func lets(rule *snapshot.AccessRule, trustDomain, namespace, account string) bool {
	return rule.Anyone || slices.ContainsFunc(rule.Sources, func(s snapshot.Source) bool {
		return (len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace)) &&
			(len(s.Identities) == 0 || slices.ContainsFunc(s.Identities, func(id snapshot.Identity) bool {
				return id.TrustDomain == trustDomain && slices.Contains([]string{"", namespace}, id.Namespace) && slices.Contains([]string{"", account}, id.ServiceAccount)
			}))
	})
}

func randomSources(r *rand.Rand) []commonv1.IdentitySelector {
	some := func(list []string) []string {
		var out []string
		for range r.Intn(3) {
			out = append(out, list[r.Intn(len(list))])
		}
		return out
	}
	clusters := []string{"one", "two", "three", "unknown"}
	var out []commonv1.IdentitySelector
	for range r.Intn(3) {
		s := commonv1.IdentitySelector{}
		if r.Intn(2) == 0 {
			s.KubeIdentityMatcher = &commonv1.KubeIdentityMatcher{Namespaces: some(accessNames[1:]), Clusters: some(clusters)}
		}
		if r.Intn(2) == 0 {
			s.KubeServiceAccountRefs = &commonv1.KubeServiceAccountRefs{}
			for range r.Intn(3) {
				s.KubeServiceAccountRefs.ServiceAccounts = append(s.KubeServiceAccountRefs.ServiceAccounts, commonv1.ClusterObjectRef{
					Name: accessNames[r.Intn(3)], Namespace: accessNames[r.Intn(3)], ClusterName: append(clusters, "")[r.Intn(5)],
				})
			}
		}
		out = append(out, s)
	}
	return out
}

// TestAccessIsWhatIsWritten: a certificate is let in if and only if a workload
// that has it is selected; of any other cluster than that of the workload it can
// only be where the trust domain is the same.
func TestAccessIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	env := accessWorld()
	in, out := 0, 0
	for seed := range int64(3000) {
		p := &networkingv1.AccessPolicy{Spec: networkingv1.AccessPolicySpec{SourceSelector: randomSources(rand.New(rand.NewSource(seed)))}}
		rule, _ := readSources(p, env.inv, env.topology)
		for _, namespace := range accessNames[1:] {
			for _, account := range accessNames[1:] {
				for _, domain := range []string{"a", "b"} {
					want := slices.ContainsFunc(env.inv.Workloads, func(o *discoveryv1.Workload) bool {
						k := o.Spec.Kubernetes
						return accessClusters[k.Controller.ClusterName] == domain && k.Controller.Namespace == namespace && k.ServiceAccountName == account &&
							inventory.SelectsIdentity(p.Spec.SourceSelector, k)
					})
					require.Equal(t, want, lets(rule, domain, namespace, account),
						"seed %d: %+v: %s/ns/%s/sa/%s", seed, p.Spec.SourceSelector, domain, namespace, account)
					if want {
						in++
					} else {
						out++
					}
				}
			}
		}
	}
	require.Positive(t, in)
	require.Positive(t, out)
}
