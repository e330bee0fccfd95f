package virtualmesh

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// GatewayWorkloads reports, by index, which workloads are gateways. Their proxies are
// no sidecars.
func (t *Topology) GatewayWorkloads() map[int]bool {
	selectors := map[inventory.Namespace][]map[string]string{}
	for _, m := range t.Meshes {
		for _, gw := range m.Gateways {
			at := inventory.Namespace{Cluster: m.Cluster, Name: gw.Service.Namespace}
			selectors[at] = append(selectors[at], gw.Selector)
		}
		for _, gw := range m.OpenGateways {
			at := inventory.Namespace{Cluster: m.Cluster, Name: gw.Service.Namespace}
			selectors[at] = append(selectors[at], gw.Selector)
		}
	}
	out := map[int]bool{}
	for i, workload := range t.inv.Workloads {
		if k := workload.Spec.Kubernetes; k != nil && t.isGatewayPod(workload, selectors[inventory.NamespaceOf(k)]) {
			out[i] = true
		}
	}
	return out
}

// isGatewayPod reports whether the pods of a workload are gateways: by how they run, by their labels, or because one of the
// selectors matches them.
func (t *Topology) isGatewayPod(w *discoveryv1.Workload, selectors []map[string]string) bool {
	k := w.Spec.Kubernetes
	mesh := t.byRef[w.Spec.Mesh]
	return k.Gateway || mesh != nil && mesh.Dialect.Gateways.Match(k.PodLabels) ||
		slices.ContainsFunc(selectors, func(s map[string]string) bool { return inventory.MatchLabels(s, k.PodLabels) })
}

// isGateway reports whether a Destination is a gateway, in use or not. Gateways are
// not federated: their pods accept connections as their Gateway objects say, not the
// mutual TLS of callers in other clusters.
func isGateway(mesh *snapshot.MeshPlan, d *discoveryv1.Destination, pods podLabels) bool {
	return mesh.Dialect.Gateways.IsEastWest(d.Spec.KubeService.WorkloadSelectorLabels) ||
		slices.ContainsFunc(mesh.Gateways, func(gw snapshot.GatewayPlan) bool { return gw.Destination.Name == d.Name }) ||
		selectsOneOf(d.Spec.KubeService, pods)
}

// selectsOneOf reports whether a Service selects one of some pods.
func selectsOneOf(service *discoveryv1.KubeService, pods podLabels) bool {
	return slices.ContainsFunc(pods[inventory.Namespace{Cluster: service.Ref.ClusterName, Name: service.Ref.Namespace}], func(labels map[string]string) bool {
		return len(service.WorkloadSelectorLabels) > 0 && inventory.MatchLabels(service.WorkloadSelectorLabels, labels)
	})
}

// gatewaysOf are the Services of a mesh that select gateways, or pods that are labelled as such.
func gatewaysOf(mesh *snapshot.MeshPlan, inv *inventory.Inventory, pods podLabels) (out []*discoveryv1.Destination) {
	of := commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}
	for _, d := range inv.Destinations {
		if d.Spec.KubeService != nil && d.Spec.Mesh != nil && *d.Spec.Mesh == of && !snapshot.AllAmbient(d.Spec.KubeService) && (hasGatewayRole(mesh, d) || selectsOneOf(d.Spec.KubeService, pods)) {
			out = append(out, d)
		}
	}
	return out
}

// podLabels are the labels of the pods of workloads, by namespace.
type podLabels map[inventory.Namespace][]map[string]string

// dividePods divides the workloads into gateways of all kinds, and others.
func (t *Topology) dividePods() (gateways, others podLabels) {
	gateways, others = podLabels{}, podLabels{}
	for _, w := range t.inv.Workloads {
		k := w.Spec.Kubernetes
		if k == nil {
			continue
		}
		of := others
		if t.isGatewayPod(w, nil) {
			of = gateways
		}
		of[inventory.NamespaceOf(k)] = append(of[inventory.NamespaceOf(k)], k.PodLabels)
	}
	return gateways, others
}
