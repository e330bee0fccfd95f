package explain

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// anySource reports whether a policy has no source selector.
func anySource(p *snapshot.PolicyPlan) bool {
	switch policy := p.Policy.(type) {
	case *networkingv1.TrafficPolicy:
		return len(policy.Spec.SourceSelector) == 0
	case *networkingv1.AccessPolicy:
		return len(policy.Spec.SourceSelector) == 0
	}
	return false
}

// namesAllCallers reports whether a plan names all workloads that its policy
// selects; of a policy that selects many it names the first.
func namesAllCallers(p *snapshot.PolicyPlan) bool { return p.WorkloadCount == len(p.Workloads) }

// selectsCaller reports whether a policy selects a workload as a caller.
func (x *Index) selectsCaller(p *snapshot.PolicyPlan, ref snapshot.Ref, o *discoveryv1.Workload) bool {
	if p.Ref.Kind == snapshot.TrafficPolicy && modeOf(o).IsAmbient() {
		return false
	}
	if namesAllCallers(p) {
		_, found := slices.BinarySearchFunc(p.Workloads, ref, snapshot.Ref.Compare)
		return found
	}
	return x.callingMeshes(p)[x.meshOf(o)] && matchesCaller(p, o)
}

// matchesCaller reports whether the selectors of a policy match a workload.
func matchesCaller(p *snapshot.PolicyPlan, o *discoveryv1.Workload) bool {
	k := o.Spec.Kubernetes
	if k == nil || anySource(p) {
		return anySource(p)
	}
	switch policy := p.Policy.(type) {
	case *networkingv1.TrafficPolicy:
		return inventory.SelectsWorkload(policy.Spec.SourceSelector, k)
	case *networkingv1.AccessPolicy:
		return inventory.SelectsIdentity(policy.Spec.SourceSelector, k)
	}
	return false
}

// policiesByCaller returns a function that counts the policies that select a workload as a
// caller. It is made once for all workloads.
func (x *Index) policiesByCaller() func(snapshot.Ref, *discoveryv1.Workload) int {
	named := map[snapshot.Ref]int{}
	ofMesh := map[*snapshot.MeshPlan]int{}
	type selecting struct {
		policy *snapshot.PolicyPlan
		meshes map[*snapshot.MeshPlan]bool
	}
	var others []selecting
	for _, p := range x.state.Plan.Policies {
		switch {
		case namesAllCallers(p):
			for _, ref := range p.Workloads {
				named[ref]++
			}
		case anySource(p):
			for m := range x.callingMeshes(p) {
				ofMesh[m]++
			}
		default:
			others = append(others, selecting{p, x.callingMeshes(p)})
		}
	}
	return func(ref snapshot.Ref, o *discoveryv1.Workload) int {
		mesh := x.meshOf(o)
		n := named[ref] + ofMesh[mesh]
		if modeOf(o).IsAmbient() { // no TrafficPolicy is for them
			return countAccess(x, ref, o)
		}
		for _, a := range others {
			if a.meshes[mesh] && matchesCaller(a.policy, o) {
				n++
			}
		}
		return n
	}
}

// callingMeshes are the meshes whose workloads can call the targets of a policy:
// those of the targets, and the others in the same VirtualMeshes.
func (x *Index) callingMeshes(p *snapshot.PolicyPlan) map[*snapshot.MeshPlan]bool {
	meshes := map[*snapshot.MeshPlan]bool{}
	for i := range p.Verdicts {
		d := x.destinations[p.Verdicts[i].Destination]
		if d == nil || d.Mesh == nil || meshes[d.Mesh] {
			continue
		}
		meshes[d.Mesh] = true
		for _, m := range x.state.Plan.Meshes {
			if m.VirtualMesh != nil && m.VirtualMesh == d.Mesh.VirtualMesh {
				meshes[m] = true
			}
		}
	}
	return meshes
}
