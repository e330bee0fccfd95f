package policy

import (
	"reflect"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// assembler makes a Plan of what was planned for each Destination.
type assembler struct{ *reconciler }

func assembling(r *reconciler) assembler { return assembler{r} }

// assemble builds the Plan. What did not change is the same object as in the last
// Plan.
func (r assembler) assemble() *snapshot.Plan {
	plan := &snapshot.Plan{
		Meshes: r.env.topology.Meshes, Workloads: r.env.inv.Workloads,
	}
	if r.rebuilt {
		plans := make([]*snapshot.DestinationPlan, len(r.states))
		for i, s := range r.states {
			plans[i] = s.plan
		}
		plan.Destinations = snapshot.ListOf(plans)
	} else {
		plan.Destinations = r.plan.Destinations.With(r.changed)
	}
	plan.VirtualDestinations = r.planVirtualDestinations()
	plan.Policies = r.planPolicies()
	plan.Dependencies, plan.Sidecars = r.dependencies.plans, r.dependencies.sidecars
	r.updateExtended()
	plan.Filters, plan.Externals = r.planFilters(), r.planExternals()
	plan.VirtualMeshes = r.planVirtualMeshes()
	plan.Warnings = ambientWarnings(r.reconciler)
	plan.Passages = r.planPassages(plan.VirtualDestinations)
	return plan
}

// planPolicies plans all policies, TrafficPolicies first.
func (r assembler) planPolicies() []*snapshot.PolicyPlan {
	out := make([]*snapshot.PolicyPlan, 0, len(r.traffic)+len(r.access))
	filters, escapes := newFiltered(r.reconciler), newEscaping(r.reconciler)
	for _, b := range r.traffic {
		if b.filters.update(append(filters.issues(b.ref, b.selected, b.workloads), escapes.issues(b.ofEscapes(), b.selected, b.workloads)...)) || b.stale {
			b.plan, b.stale = reuseIfEqual(b.plan, r.planTrafficPolicy(b)), false
		}
		out = append(out, b.plan)
	}
	for _, b := range r.access {
		if b.filters.update(slices.Concat(filters.issues(b.ref, b.selected, b.workloads), escapes.issues(b.ofEscapes(), b.selected, b.workloads), unreached(r.reconciler, b))) || b.stale || r.handWrittenChanged {
			b.plan, b.stale = reuseIfEqual(b.plan, r.planAccessPolicy(b)), false
		}
		out = append(out, b.plan)
	}
	if r.plan != nil && slices.Equal(r.plan.Policies, out) {
		return r.plan.Policies
	}
	return out
}

// reuseIfEqual returns the earlier plan if both are equal, so that its status is not
// written again.
func reuseIfEqual(was, now *snapshot.PolicyPlan) *snapshot.PolicyPlan {
	if reflect.DeepEqual(was, now) {
		return was
	}
	return now
}

func (r assembler) planTrafficPolicy(b *trafficBinding) *snapshot.PolicyPlan {
	p := &snapshot.PolicyPlan{Ref: b.ref, Policy: b.policy, Workloads: b.workloads.First, WorkloadCount: b.workloads.Count, Issues: append(slices.Clip(b.issues), b.filters.issues...)}
	p.Verdicts = make([]snapshot.Verdict, 0, len(b.selected))
	for _, i := range b.selected {
		s := r.states[i]
		verdict := s.accepted.verdicts[s.accepted.verdictOf[b.policy]]
		verdict.Issues = slices.Clip(verdict.Issues)
		verdict = withIssues(verdict, b.ref, tlsIssues(s.plan, b.ref))
		p.Verdicts = append(p.Verdicts, verdict)
		p.IssueCount += len(verdict.Issues)
	}
	return b.enforcementRecord.record(p, r.trafficEnforcement(b))
}

func (r assembler) planAccessPolicy(b *accessBinding) *snapshot.PolicyPlan {
	p := &snapshot.PolicyPlan{Ref: b.ref, Policy: b.policy, Workloads: b.workloads.First, WorkloadCount: b.workloads.Count, Issues: append(slices.Clip(b.issues), b.filters.issues...)}
	unnamed := map[*snapshot.MeshPlan][]snapshot.Issue{} // the same on all of a mesh's Destinations
	var meshes []*snapshot.MeshPlan
	p.Verdicts = make([]snapshot.Verdict, 0, len(b.selected))
	for _, i := range b.selected {
		d := r.env.inv.Destinations[i]
		v := snapshot.Verdict{Destination: inventory.DestinationRef(d), Accepted: true, Order: r.accessOrder(i, b)}
		if len(d.Spec.KubeService.WorkloadSelectorLabels) == 0 {
			v = withIssues(snapshot.Verdict{Destination: inventory.DestinationRef(d)}, b.ref, []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported,
				"select the services with the pods instead", "service %s selects no pods on which to enforce access", inventory.ServiceName(d.Spec.KubeService.Ref)).At("destinationSelector")})
		} else if mesh := r.env.topology.MeshOf(d); mesh != nil {
			if _, ok := unnamed[mesh]; !ok {
				unnamed[mesh] = append(slices.Clip(b.unsupportedFields(mesh.Dialect)), identityIssues(b.rule, mesh)...)
				meshes = append(meshes, mesh)
			}
			var issues []snapshot.Issue
			switch {
			case b.rule.Denies:
				issues = append(slices.Clip(unnamed[mesh]), denialIssues(r.reconciler, b, i, mesh)...)
			default:
				issues = slices.Concat(unnamed[mesh], r.env.byHand.accessIssues(d, mesh), openGatewayIssues(d, mesh),
					identityLostIssues(r.states[i].plan, b.rule), r.states[i].shared.issuesOf(b.ref), relayIssues(r.states[i].plan, b.ref), pathIssues(b.rule, mesh),
					connectionIssues(b.rule, d.Spec.KubeService, mesh), bareIssues(d, mesh), podPortIssues(b.rule, d), ambientIssues(b, d, mesh, r.states[i].rules))
			}
			if by := overruledBy(r.reconciler, b, i); by != nil {
				issues = append(issues, overruled(by))
			}
			if mesh.Dialect.ByAccount {
				issues = append(slices.Clip(r.states[i].grants.issues[grantKey{b, i}]), bareIssues(d, mesh)...)
			}
			if v.Accepted = !snapshot.HasErrors(issues); !v.Accepted {
				v.Order = 0
			}
			v = withIssues(v, b.ref, issues)
		}
		p.Verdicts = append(p.Verdicts, v)
		p.IssueCount += len(v.Issues)
	}
	for _, issue := range append(r.env.topology.SharedIdentityIssues(b.rule, meshes), r.env.callerRootIssues(b.policy, meshes)...) {
		p.Issues = append(slices.Clone(p.Issues), issue.On(b.ref, snapshot.Ref{}))
	}
	return b.enforcementRecord.record(p, r.accessEnforcement(b))
}

// accessOrder is the position of a policy among those in force on a Destination.
func (r assembler) accessOrder(i int, b *accessBinding) uint32 {
	s := r.states[i]
	var before uint32
	for _, other := range r.attached[i].access {
		if other == b {
			break
		}
		if s.grants != nil && snapshot.HasErrors(s.grants.issues[grantKey{other, i}]) {
			continue
		}
		if inForce(r.reconciler, other, i) != nil {
			before++
		}
	}
	return before
}
