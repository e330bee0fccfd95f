package watch

import (
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// dropVerifiedAt drops when the agent looked last, which changes all the time.
func dropVerifiedAt(o *certificatesv1.IssuedCertificate) {
	if o.Status.Trust != nil {
		o.Status.Trust.VerifiedAt = nil
	}
}

// dropClusterStatus keeps the namespace of the agent, how the agent was connected, and that nothing is left in a cluster that leaves: a
// server that has just started does not know.
func dropClusterStatus(o *multiclusterv1alpha1.KubernetesCluster) {
	left := snapshot.Left(o)
	o.Status = multiclusterv1alpha1.KubernetesClusterStatus{Namespace: o.Status.Namespace, Server: o.Status.Server, Connection: o.Status.Connection}
	if left != nil {
		o.Status.Status = []multiclusterv1alpha1.ClusterStatus{{Reasons: []multiclusterv1alpha1.ClusterReason{*left}}}
	}
}

// dropVirtualMeshStatus keeps the trust: which members have had it before and, until the
// roots have been read, where it stands.
func dropVirtualMeshStatus(o *networkingv1.VirtualMesh) {
	o.Status = networkingv1.VirtualMeshStatus{Trust: o.Status.Trust}
}
