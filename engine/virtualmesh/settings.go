package virtualmesh

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// everyCluster is the key of the detector for clusters that have none of their own.
const everyCluster = "*"

// detectorFor is the ingress gateway detector of the Settings for the cluster of a mesh; nil if
// there is none. Fields that are not set for the cluster come from the detector for
// all clusters.
func detectorFor(s *settingsv1.Settings, mesh *snapshot.MeshPlan) *settingsv1.IngressGatewayDetector {
	if s == nil || s.Spec.Discovery == nil || s.Spec.Discovery.Istio == nil {
		return nil
	}
	detectors := s.Spec.Discovery.Istio.IngressGatewayDetectors
	own, ok := detectors[mesh.Cluster]
	all, forAll := detectors[everyCluster]
	if !ok && !forAll {
		return nil
	}
	if len(own.GatewayWorkloadLabels) == 0 {
		own.GatewayWorkloadLabels = all.GatewayWorkloadLabels
	}
	if len(own.GatewayWorkloadLabels) == 0 {
		g := mesh.Dialect.Gateways
		if g == nil {
			return nil
		}
		own.GatewayWorkloadLabels = map[string]string{g.Role: g.Ingress[0]}
	}
	if own.GatewayTlsPortName == "" {
		own.GatewayTlsPortName = all.GatewayTlsPortName
	}
	return &own
}

// ControlPlaneNamespaces are the namespaces of a cluster in which the Settings, which may
// be nil, say that control planes are installed.
func ControlPlaneNamespaces(s *settingsv1.Settings, cluster string) []string {
	if s == nil || s.Spec.Discovery == nil {
		return nil
	}
	var out []string
	for _, n := range s.Spec.Discovery.ControlPlanes {
		if names(s.Spec.Discovery.ControlPlanes, cluster, n.Namespace) {
			out = append(out, n.Namespace)
		}
	}
	return out
}

// names reports whether a list of the Settings names a namespace of a cluster.
func names(list []settingsv1.ClusterNamespace, cluster, namespace string) bool {
	return slices.ContainsFunc(list, func(n settingsv1.ClusterNamespace) bool {
		return n.Namespace == namespace && (n.ClusterName == cluster || n.ClusterName == "" || n.ClusterName == everyCluster)
	})
}

// Withdrawals bound what is deleted without a user's edit, as the Settings, which may be
// nil, say.
func Withdrawals(s *settingsv1.Settings) snapshot.Withdrawals {
	out := snapshot.UsualWithdrawals
	if s == nil || s.Spec.Withdrawals == nil {
		return out
	}
	if grace := s.Spec.Withdrawals.GracePeriod; grace != nil {
		out.Grace = grace.Duration
	}
	if percent := s.Spec.Withdrawals.MaxPercent; percent != nil {
		out.MaxPercent = int(*percent)
	}
	return out
}

// namespaceTimeout is how long the exchange of a root waits for a namespace, as the Settings, which may be nil, say; nil if
// they do not.
func namespaceTimeout(s *settingsv1.Settings) *metav1.Duration {
	if s == nil || s.Spec.Trust == nil {
		return nil
	}
	return s.Spec.Trust.NamespaceTimeout
}

// detectedGateways are the services in the namespace of a mesh's control plane that
// match a detector.
func (t *Topology) detectedGateways(mesh *snapshot.MeshPlan, by *settingsv1.IngressGatewayDetector) []*discoveryv1.Destination {
	if by == nil {
		return nil
	}
	of := commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}
	var out []*discoveryv1.Destination
	for _, d := range t.inv.Destinations {
		if d.Spec.Mesh == nil || *d.Spec.Mesh != of || d.Spec.KubeService == nil || d.Spec.KubeService.Ref.Namespace != mesh.Namespace {
			continue
		}
		if inventory.MatchLabels(by.GatewayWorkloadLabels, d.Spec.KubeService.WorkloadSelectorLabels) {
			out = append(out, d)
		}
	}
	return out
}
