package status

import (
	"fmt"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func policyStatus(p *snapshot.PolicyPlan, failures []snapshot.Failure) *snapshot.Status {
	s := summarize("destinations", p.Verdicts, p.Issues, failures)
	s.counts.Workloads = int32(p.WorkloadCount)
	s.causes.audited = p.Audited
	var workloads []string
	for _, w := range p.Workloads {
		workloads = append(workloads, w.Key())
	}
	if more := p.WorkloadCount - len(p.Workloads); more > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("workloads: %d more are not listed", more))
	}
	out := &snapshot.Status{Ref: p.Ref}
	switch policy := p.Policy.(type) {
	case *networkingv1.TrafficPolicy:
		out.Value = &networkingv1.TrafficPolicyStatus{
			ObservedGeneration: policy.Generation, LastEnforcedGeneration: p.LastEnforced, State: s.state, Destinations: s.destinations, Workloads: workloads,
			Errors: s.errors, Warnings: s.warnings, Counts: s.counts, Conditions: s.causes.conditions(policy.Generation, s.state),
		}
	case *networkingv1.AccessPolicy:
		out.Value = &networkingv1.AccessPolicyStatus{
			ObservedGeneration: policy.Generation, LastEnforcedGeneration: p.LastEnforced, State: s.state, Destinations: s.destinations, Workloads: workloads,
			Errors: s.errors, Warnings: s.warnings, Counts: s.counts, Conditions: s.causes.conditions(policy.Generation, s.state),
		}
	}
	return out
}
