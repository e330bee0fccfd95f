package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
)

// TestNamesAndAddressesAreNotTakenInTurn: of two translations that each gave a name or
// an address to another object, because neither had read what the other wrote, the
// first one counts.
func TestNamesAndAddressesAreNotTakenInTurn(t *testing.T) {
	t.Parallel()
	head := func(uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "a", UID: types.UID(uid)}
	}
	destination := func(uid, namespace, address string) *discoveryv1.Destination {
		d := &discoveryv1.Destination{ObjectMeta: head(uid), Spec: discoveryv1.DestinationSpec{KubeService: &discoveryv1.KubeService{}}}
		d.Spec.KubeService.Ref.ClusterName, d.Spec.KubeService.Ref.Namespace = "c", namespace
		d.Status.AppliedFederation = &discoveryv1.AppliedFederation{Address: address, FederatedHostname: address}
		return d
	}
	destinations := newStore(nil, stripOwn[*discoveryv1.Destination], func() {})
	meshes := newStore(nil, stripOwn[*discoveryv1.Mesh], func() {})
	workloads := newStore(nil, stripOwn[*discoveryv1.Workload], func() {})
	virtuals := newStore(nil, unless(withoutStatuses, dropVirtualStatus), func() {})
	put := func(uid, namespace, address string) (read [5]string) {
		t.Helper()
		mesh := &discoveryv1.Mesh{ObjectMeta: head(uid), Spec: discoveryv1.MeshSpec{Istio: &discoveryv1.IstioMesh{}}}
		mesh.Spec.Istio.Installation.Cluster, mesh.Spec.Istio.Installation.Namespace = "c", namespace
		workload := &discoveryv1.Workload{ObjectMeta: head(uid), Spec: discoveryv1.WorkloadSpec{Kubernetes: &discoveryv1.KubernetesWorkload{}}}
		workload.Spec.Kubernetes.Controller.ClusterName, workload.Spec.Kubernetes.Controller.Namespace = "c", namespace
		virtual := &enterprisev1beta1.VirtualDestination{ObjectMeta: head(uid)}
		virtual.Status.Address, virtual.Status.State = address, "ACCEPTED"
		require.NoError(t, destinations.Replace([]any{destination(uid, namespace, address)}, ""))
		require.NoError(t, meshes.Update(mesh))
		require.NoError(t, workloads.Update(workload))
		require.NoError(t, virtuals.Update(virtual))
		d, v := destinations.list()[0], virtuals.list()[0]
		assert.Equal(t, address, d.Status.AppliedFederation.FederatedHostname, "the rest is new")
		assert.Empty(t, v.Status.State)
		return [5]string{
			d.Spec.KubeService.Ref.Namespace, meshes.list()[0].Spec.Istio.Installation.Namespace,
			workloads.list()[0].Spec.Kubernetes.Controller.Namespace, d.Status.AppliedFederation.Address, v.Status.Address,
		}
	}
	assert.Equal(t, [5]string{"one", "one", "one", "", ""}, put("1", "one", ""))
	assert.Equal(t, [5]string{"one", "one", "one", "240.0.0.1", "240.0.0.1"}, put("1", "one", "240.0.0.1"))
	assert.Equal(t, [5]string{"one", "one", "one", "240.0.0.1", "240.0.0.1"}, put("1", "two", "240.0.0.2"))
	assert.Equal(t, [5]string{"one", "one", "one", "", ""}, put("1", "one", ""), "it has none any more")
	assert.Equal(t, [5]string{"two", "two", "two", "240.0.0.2", "240.0.0.2"}, put("2", "two", "240.0.0.2"), "another object")

	require.NoError(t, destinations.Update(&discoveryv1.Destination{ObjectMeta: head("2")}))
	assert.Equal(t, "two", destinations.list()[0].Spec.KubeService.Ref.Namespace, "somebody emptied it, and it is repaired")
}
