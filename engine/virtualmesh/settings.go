package virtualmesh

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// SettingsInForce are the oldest; nil if there are none.
func SettingsInForce(all []*settingsv1.Settings) *settingsv1.Settings {
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *settingsv1.Settings) int { return inventory.CompareAge(a, b) })
}

// everyCluster is the key of the detector for clusters without one of their own.
const everyCluster = "*"

// detectorFor is what the Settings call an ingress gateway in a cluster; nil if they
// say nothing of it. What an entry for the cluster leaves open, the one for all
// fills in.
func detectorFor(s *settingsv1.Settings, cluster string) *settingsv1.IngressGatewayDetector {
	if s == nil || s.Spec.Discovery == nil || s.Spec.Discovery.Istio == nil {
		return nil
	}
	detectors := s.Spec.Discovery.Istio.IngressGatewayDetectors
	own, ok := detectors[cluster]
	all, forAll := detectors[everyCluster]
	if !ok && !forAll {
		return nil
	}
	if len(own.GatewayWorkloadLabels) == 0 {
		own.GatewayWorkloadLabels = all.GatewayWorkloadLabels
	}
	if len(own.GatewayWorkloadLabels) == 0 {
		own.GatewayWorkloadLabels = map[string]string{ingressLabel: ingressGateway}
	}
	if own.GatewayTlsPortName == "" {
		own.GatewayTlsPortName = all.GatewayTlsPortName
	}
	return &own
}

// detected are the services of a mesh, beside its control plane, that a detector
// takes for ingress gateways.
func (t *Topology) detected(mesh *snapshot.MeshPlan, by *settingsv1.IngressGatewayDetector) []*discoveryv1.Destination {
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
