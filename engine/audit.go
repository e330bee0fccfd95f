package engine

import (
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/policy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// auditor plans what would be if all that is audited was enforced. Its zero value has planned nothing.
type auditor struct {
	planner policy.Planner
	// enforced are VirtualMeshes that are audited, as they would be enforced, and policies what was made of a plan of an audited
	// policy: what is the same as last time must have the same address.
	enforced map[*networkingv1.VirtualMesh]*networkingv1.VirtualMesh
	policies map[*snapshot.PolicyPlan]*snapshot.PolicyPlan
	// without is what was last made of a list of AccessPolicies, and meshes of one of VirtualMeshes.
	accessFrom, without []*networkingv1.AccessPolicy
	meshesFrom, meshes  []*networkingv1.VirtualMesh
	// trials are what was last tried, by their keys.
	trials map[string]*snapshot.TrialPlan
}

// split returns what an input has in force, and what it would have if all that is audited was enforced; nil if nothing is audited.
func (a *auditor) split(in *snapshot.Input) (inForce, audited *snapshot.Input) {
	m := in.Management
	byPolicy := slices.ContainsFunc(m.AccessPolicies, isAudited)
	byMesh := slices.ContainsFunc(m.VirtualMeshes, auditsAccess)
	if !byPolicy && !byMesh {
		*a = auditor{planner: policy.Planner{Dialects: a.planner.Dialects}}
		return in, nil
	}
	inForce, audited = in, in
	if byPolicy {
		if !snapshot.SameSlice(a.accessFrom, m.AccessPolicies) {
			a.accessFrom, a.without = m.AccessPolicies, slices.DeleteFunc(slices.Clone(m.AccessPolicies), isAudited)
		}
		inForce = withManagement(in, func(m *snapshot.Management) { m.AccessPolicies = a.without })
	}
	if byMesh {
		if !snapshot.SameSlice(a.meshesFrom, m.VirtualMeshes) {
			a.meshesFrom, a.meshes = m.VirtualMeshes, a.enforce(m.VirtualMeshes)
		}
		audited = withManagement(in, func(m *snapshot.Management) { m.VirtualMeshes = a.meshes })
	}
	return inForce, audited
}

func isAudited(p *networkingv1.AccessPolicy) bool { return p.Spec.Audited() }

func auditsAccess(vm *networkingv1.VirtualMesh) bool { return vm.Spec.AuditsAccess() }

// enforce returns VirtualMeshes with that enforced which they audit.
func (a *auditor) enforce(list []*networkingv1.VirtualMesh) []*networkingv1.VirtualMesh {
	out, now := slices.Clone(list), map[*networkingv1.VirtualMesh]*networkingv1.VirtualMesh{}
	for i, vm := range list {
		if !auditsAccess(vm) {
			continue
		}
		would := a.enforced[vm]
		if would == nil {
			would = vm.DeepCopy()
			would.Spec.GlobalAccessPolicy = networkingv1.GlobalAccessPolicyEnabled
		}
		out[i], now[vm] = would, would
	}
	a.enforced = now
	return out
}

func withManagement(in *snapshot.Input, change func(*snapshot.Management)) *snapshot.Input {
	out, m := *in, *in.Management
	change(&m)
	out.Management = &m
	return &out
}

// plan returns what would be planned, and puts the verdicts on audited policies into the plan that is in force.
func (a *auditor) plan(audited *snapshot.Input, discovered []*snapshot.Discovered, inForce *snapshot.Plan) (would, with *snapshot.Plan) {
	would = a.planner.Plan(audited, discovered)
	merged, policies := *inForce, map[*snapshot.PolicyPlan]*snapshot.PolicyPlan{}
	merged.Policies = slices.Clone(inForce.Policies)
	for _, p := range would.Policies {
		o, ok := p.Policy.(*networkingv1.AccessPolicy)
		if !ok || !isAudited(o) {
			continue
		}
		// The plan may have an earlier version of the object, with another status.
		var enforced int64
		if stored, ok := audited.Find(p.Ref).(*networkingv1.AccessPolicy); ok {
			enforced = stored.Status.LastEnforcedGeneration
		}
		with := a.policies[p]
		if with == nil || with.LastEnforced != enforced {
			one := *p
			one.Audited, one.LastEnforced = true, enforced
			with = &one
		}
		policies[p] = with
		at, _ := slices.BinarySearchFunc(merged.Policies, p.Ref, func(p *snapshot.PolicyPlan, ref snapshot.Ref) int { return p.Ref.Compare(ref) })
		merged.Policies = slices.Insert(merged.Policies, at, with)
	}
	a.policies = policies
	merged.Trials = a.try(inForce, would)
	return would, &merged
}
