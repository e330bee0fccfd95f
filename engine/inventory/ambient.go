package inventory

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// anyAmbient reports whether some of the meshes have workloads in ambient mode.
func (inv *Inventory) anyAmbient(meshes map[commonv1.ObjectRef]bool) bool {
	for mesh := range meshes {
		if len(inv.ambientOf[mesh]) > 0 {
			return true
		}
	}
	return false
}

// AmbientWorkloads lists the workloads of a mesh in ambient mode, or for which that is asked, ascending.
func (inv *Inventory) AmbientWorkloads(mesh commonv1.ObjectRef) (out []*discoveryv1.KubernetesWorkload) {
	for _, i := range inv.ambientOf[mesh] {
		out = append(out, inv.Workloads[i].Spec.Kubernetes)
	}
	return out
}

// AsksServers reports whether a mesh has workloads that have DNS servers resolve hosts unless the settings of the mesh say otherwise: those
// with sidecars that do not say by themselves that these answer. In ambient mode ztunnel answers (Istio,
// releasenotes/notes/ambient-dns-on.yaml), and gateways call nothing by its name.
func (inv *Inventory) AsksServers(mesh commonv1.ObjectRef) bool { return inv.asking[mesh] }

func asksServers(k *discoveryv1.KubernetesWorkload) bool {
	return k != nil && !k.Gateway && k.DataPlaneMode == discoveryv1.ModeOwnProxy && k.ProxyDNS != discoveryv1.ProxyDNSOn
}
