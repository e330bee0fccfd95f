package policy

import (
	"reflect"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// assemble puts the plan together from the cells; what did not change is the
// same object as in the plan before.
func (r *round) assemble() *snapshot.Plan {
	plan := &snapshot.Plan{
		Meshes: r.world.topology.Meshes, VirtualMeshes: r.world.topology.VirtualMeshes, Workloads: r.world.inv.Workloads,
	}
	switch {
	case !r.fresh && len(r.changed) == 0:
		plan.Destinations = r.plan.Destinations
	case r.fresh:
		plans := make([]*snapshot.DestinationPlan, len(r.cells))
		for i, c := range r.cells {
			plans[i] = c.plan
		}
		plan.Destinations = snapshot.ListOf(plans)
	default:
		plans := make(map[int]*snapshot.DestinationPlan, len(r.changed))
		for i := range r.changed {
			plans[i] = r.cells[i].plan
		}
		plan.Destinations = r.plan.Destinations.With(plans)
	}
	plan.VirtualDestinations = r.planVirtuals()
	plan.Policies = r.policyPlans()
	plan.Dependencies, plan.Sidecars = r.dependencies.plans, r.dependencies.sidecars
	r.findSpecial()
	plan.Filters, plan.Externals = r.filterPlans(), r.externalPlans()
	return plan
}

// policyPlans gives the verdicts on all policies, TrafficPolicies first.
func (r *round) policyPlans() []*snapshot.PolicyPlan {
	if !r.fresh && len(r.policies) == 0 && len(r.plan.Policies) == len(r.traffic)+len(r.access) {
		return r.plan.Policies
	}
	out := make([]*snapshot.PolicyPlan, 0, len(r.traffic)+len(r.access))
	for _, b := range r.traffic {
		if b.plan == nil || r.policies[b.ref] {
			b.plan = unlessEqual(b.plan, r.judgeTraffic(b))
		}
		out = append(out, b.plan)
	}
	for _, b := range r.access {
		if b.plan == nil || r.policies[b.ref] {
			b.plan = unlessEqual(b.plan, r.judgeAccess(b))
		}
		out = append(out, b.plan)
	}
	return out
}

// unlessEqual is the earlier plan if it says the same, so that nothing is
// written anew.
func unlessEqual(was, now *snapshot.PolicyPlan) *snapshot.PolicyPlan {
	if reflect.DeepEqual(was, now) {
		return was
	}
	return now
}

func (r *round) judgeTraffic(b *trafficBinding) *snapshot.PolicyPlan {
	p := &snapshot.PolicyPlan{Ref: b.ref, Policy: b.policy, Workloads: b.workloads.First, WorkloadCount: b.workloads.Count, Issues: b.issues}
	p.Verdicts = make([]snapshot.Verdict, 0, len(b.selected))
	for _, i := range b.selected {
		c := r.cells[i]
		at := slices.Index(c.traffic, b)
		p.Verdicts = append(p.Verdicts, c.accepted.verdicts[at])
		p.Remarks += len(c.accepted.verdicts[at].Issues)
	}
	return b.ceasing.note(p, r.trafficHolds(b, p))
}

func (r *round) judgeAccess(b *accessBinding) *snapshot.PolicyPlan {
	p := &snapshot.PolicyPlan{Ref: b.ref, Policy: b.policy, Workloads: b.workloads.First, WorkloadCount: b.workloads.Count, Issues: b.issues}
	unnamed := map[*snapshot.MeshPlan][]snapshot.Issue{} // the same on all of a mesh's Destinations
	var meshes []*snapshot.MeshPlan
	p.Verdicts = make([]snapshot.Verdict, 0, len(b.selected))
	for _, i := range b.selected {
		d := r.world.inv.Destinations[i]
		v := snapshot.Verdict{Destination: inventory.DestinationRef(d), Accepted: true, Order: r.accessOrder(i, b)}
		if len(d.Spec.KubeService.WorkloadSelectorLabels) == 0 {
			v = reject(snapshot.Verdict{Destination: inventory.DestinationRef(d)}, b.ref, []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported,
				"select the services whose pods answer instead", "service %s selects no pods on which access could be enforced", inventory.ServiceName(d.Spec.KubeService.Ref))})
		} else if mesh := r.world.topology.MeshOf(d); mesh != nil {
			if _, ok := unnamed[mesh]; !ok {
				unnamed[mesh] = unnameable(b.rule, mesh)
				meshes = append(meshes, mesh)
			}
			issues := slices.Concat(unnamed[mesh], r.world.alsoGuarded(d, mesh), keptOpen(d, mesh))
			if mesh.ByAccount {
				issues = r.cells[i].grants.issues[grantKey{b, i}]
			}
			if v.Accepted = !snapshot.HasErrors(issues); !v.Accepted {
				v.Order = 0
			}
			v = reject(v, b.ref, issues)
		}
		p.Verdicts = append(p.Verdicts, v)
		p.Remarks += len(v.Issues)
	}
	for _, issue := range r.world.topology.Indistinct(b.rule, meshes) {
		p.Issues = append(slices.Clone(p.Issues), issue.On(b.ref, snapshot.Ref{}))
	}
	return b.ceasing.note(p, r.accessHolds(b))
}

// accessOrder is a policy's place among those in force on a Destination.
func (r *round) accessOrder(i int, b *accessBinding) uint32 {
	c := r.cells[i]
	var before uint32
	for _, other := range c.access {
		if other == b {
			break
		}
		if c.grants == nil || !snapshot.HasErrors(c.grants.issues[grantKey{other, i}]) {
			before++
		}
	}
	return before
}
