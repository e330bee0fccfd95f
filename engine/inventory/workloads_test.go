package inventory

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWorkloadsAreFoundByPlace: looking only where selectors can match finds what
// looking everywhere does.
func TestWorkloadsAreFoundByPlace(t *testing.T) {
	t.Parallel()
	found := &snapshot.Discovered{}
	ref := func(cluster string) commonv1.ObjectRef {
		return commonv1.ObjectRef{Name: "mesh-" + cluster, Namespace: snapshot.DefaultNamespace}
	}
	for _, cluster := range []string{"a", "b", "c"} {
		found.Meshes = append(found.Meshes, &discoveryv1.Mesh{
			ObjectMeta: metav1.ObjectMeta{Name: ref(cluster).Name, Namespace: ref(cluster).Namespace},
			Spec:       discoveryv1.MeshSpec{Istio: &discoveryv1.IstioMesh{Installation: discoveryv1.MeshInstallation{Cluster: cluster}}},
		})
		mesh := ref(cluster)
		found.Destinations = append(found.Destinations, &discoveryv1.Destination{
			ObjectMeta: metav1.ObjectMeta{Name: "x-" + cluster, Namespace: snapshot.DefaultNamespace},
			Spec: discoveryv1.DestinationSpec{Mesh: &mesh, KubeService: &discoveryv1.KubeService{
				Ref: commonv1.ClusterObjectRef{Name: "x", Namespace: "n", ClusterName: cluster},
			}},
		})
		for n, namespace := range []string{"n", "m", "o"} {
			for i := range 3 {
				found.Workloads = append(found.Workloads, &discoveryv1.Workload{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d-%s-%s", i, namespace, cluster), Namespace: snapshot.DefaultNamespace},
					Spec: discoveryv1.WorkloadSpec{Mesh: mesh, Kubernetes: &discoveryv1.KubernetesWorkload{
						Controller:         commonv1.ClusterObjectRef{Name: fmt.Sprint(i), Namespace: namespace, ClusterName: cluster},
						PodLabels:          map[string]string{"app": fmt.Sprint(i)},
						ServiceAccountName: fmt.Sprintf("account-%d", (i+n)%2),
					}},
				})
			}
		}
	}
	inv := New([]*snapshot.Discovered{found}, nil)

	r := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	some := func(of ...string) (out []string) {
		for range r.Intn(3) {
			out = append(out, of[r.Intn(len(of))])
		}
		return out
	}
	hits := 0
	for range 2000 {
		var callers []commonv1.WorkloadSelector
		var identities []commonv1.IdentitySelector
		for range r.Intn(3) {
			var caller commonv1.WorkloadSelector
			var identity commonv1.IdentitySelector
			if r.Intn(5) > 0 {
				caller.KubeWorkloadMatcher = &commonv1.KubeWorkloadMatcher{Namespaces: some("n", "m", "p"), Clusters: some("a", "b", "d")}
				if r.Intn(2) == 0 {
					caller.KubeWorkloadMatcher.Labels = map[string]string{"app": fmt.Sprint(r.Intn(4))}
				}
			}
			if r.Intn(2) == 0 {
				identity.KubeIdentityMatcher = &commonv1.KubeIdentityMatcher{Namespaces: some("n", "m", "p"), Clusters: some("a", "b", "d")}
			}
			if r.Intn(2) == 0 {
				identity.KubeServiceAccountRefs = &commonv1.KubeServiceAccountRefs{}
				for range r.Intn(3) {
					identity.KubeServiceAccountRefs.ServiceAccounts = append(identity.KubeServiceAccountRefs.ServiceAccounts, commonv1.ClusterObjectRef{
						Name:      []string{"", "account-0", "account-1"}[r.Intn(3)],
						Namespace: []string{"", "n", "m"}[r.Intn(3)], ClusterName: []string{"", "a", "b"}[r.Intn(3)],
					})
				}
			}
			callers, identities = append(callers, caller), append(identities, identity)
		}
		meshes := map[commonv1.ObjectRef]bool{}
		for _, cluster := range some("a", "b", "c") {
			meshes[ref(cluster)] = true
		}
		for _, tt := range []struct {
			got     WorkloadList
			matches func(*discoveryv1.KubernetesWorkload) bool
		}{
			{inv.SelectWorkloads(meshes, callers), func(w *discoveryv1.KubernetesWorkload) bool { return SelectsWorkload(callers, w) }},
			{inv.SelectIdentities(meshes, identities), func(w *discoveryv1.KubernetesWorkload) bool { return SelectsIdentity(identities, w) }},
		} {
			var want WorkloadList
			for _, workload := range inv.Workloads {
				if meshes[workload.Spec.Mesh] && tt.matches(workload.Spec.Kubernetes) {
					want.Count++
					want.First = append(want.First, snapshot.RefOf(snapshot.Workload, workload))
				}
			}
			hits += want.Count
			require.Equal(t, want, tt.got, "%v %v", callers, identities)
		}
		requireCallers(t, inv, callers)
	}
	require.Positive(t, hits)
}

// requireCallers compares the callers that are found by place with those that are found by looking everywhere.
func requireCallers(t *testing.T, inv *Inventory, selectors []commonv1.WorkloadSelector) {
	t.Helper()
	var want []int
	var of []commonv1.ObjectRef
	for i, workload := range inv.Workloads {
		if SelectsWorkload(selectors, workload.Spec.Kubernetes) {
			want = append(want, i)
			if !slices.Contains(of, workload.Spec.Mesh) {
				of = append(of, workload.Spec.Mesh)
			}
		}
	}
	require.ElementsMatch(t, want, inv.Callers(selectors), "%v", selectors)
	require.IsIncreasing(t, append([]int{-2, -1}, inv.Callers(selectors)...))
	require.ElementsMatch(t, of, inv.MeshesOfCallers(selectors), "%v", selectors)
}
