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
