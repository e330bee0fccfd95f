package engine

import (
	"fmt"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxListed bounds the targets that a status names one by one, the worst first;
// status.counts has the whole numbers.
const maxListed = 200

// What the parts of a status may take, in bytes of text: together, with names
// and JSON around them, far less than what an API server stores.
const (
	targetBudget = 96 << 10
	textBudget   = 32 << 10
	meshBudget   = 32 << 10
)

// budget is what is left to spend.
type budget int

// spend reports whether there was enough.
func (b *budget) spend(n int) bool {
	*b -= budget(n)
	return *b >= 0
}

// summary is what the status of any policy says.
type summary struct {
	state        commonv1.ApprovalState
	destinations map[string]commonv1.ApprovalStatus
	errors       []string
	warnings     []string
	counts       *commonv1.Counts
	left         budget
}

func policyStatus(p *snapshot.PolicyPlan, failures []snapshot.Failure) *snapshot.Status {
	s := summarize(p.Verdicts, p.Issues, failures)
	s.counts.Workloads = int32(p.WorkloadCount)
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
			Errors: s.errors, Warnings: s.warnings, Counts: s.counts,
		}
	case *networkingv1.AccessPolicy:
		out.Value = &networkingv1.AccessPolicyStatus{
			ObservedGeneration: policy.Generation, LastEnforcedGeneration: p.LastEnforced, State: s.state, Destinations: s.destinations, Workloads: workloads,
			Errors: s.errors, Warnings: s.warnings, Counts: s.counts,
		}
	}
	return out
}

// summarize judges a policy as a whole: ACCEPTED if it is in force wherever it
// was asked to be, INVALID if not, FAILED if an API server did not take it.
func summarize(verdicts []snapshot.Verdict, issues []snapshot.Issue, failures []snapshot.Failure) summary {
	s := summary{state: commonv1.ApprovalStateAccepted, counts: &commonv1.Counts{Destinations: int32(len(verdicts))}, left: textBudget}
	s.add(issues)
	s.destinations, s.counts.Problems = targetStates(verdicts)
	if len(s.errors) > 0 || s.counts.Problems > 0 {
		s.state = commonv1.ApprovalStateInvalid
	}
	if more := len(verdicts) - len(s.destinations); more > 0 {
		s.warnings = append(s.warnings, unlisted("destinations", more))
	}
	if len(failures) > 0 {
		s.state = commonv1.ApprovalStateFailed
	}
	for i, f := range failures {
		text := clip(fmt.Sprintf("write error: %s: %s", f.Ref, f.Message))
		if !s.left.spend(len(text)) {
			s.errors = append(s.errors, fmt.Sprintf("write error: %d more", len(failures)-i))
			break
		}
		s.errors = append(s.errors, text)
	}
	return s
}

// unlisted says how many of a list are left out.
func unlisted(what string, more int) string {
	return fmt.Sprintf("%s: %d more are not listed", what, more)
}

// add sorts issues on the policy as a whole into errors and warnings.
func (s *summary) add(issues []snapshot.Issue) {
	for i, issue := range issues {
		if issue.Severity == snapshot.Info {
			continue
		}
		text := clip(issue.Text())
		if !s.left.spend(len(text)) {
			s.warnings = append(s.warnings, fmt.Sprintf("%d more issues are not listed", len(issues)-i))
			return
		}
		if issue.Severity == snapshot.Error {
			s.errors = append(s.errors, text)
		} else {
			s.warnings = append(s.warnings, text)
		}
	}
}

// targetStates lists verdicts by destination, those with issues first, and
// counts those that are not accepted.
func targetStates(verdicts []snapshot.Verdict) (map[string]commonv1.ApprovalStatus, int32) {
	if len(verdicts) == 0 {
		return nil, 0
	}
	var problems int32
	out := make(map[string]commonv1.ApprovalStatus, min(len(verdicts), maxListed))
	left := budget(targetBudget)
	for pass := range 3 {
		for i := range verdicts {
			v := &verdicts[i]
			rank := 2
			switch {
			case !v.Accepted:
				rank = 0
			case len(v.Issues) > 0:
				rank = 1
			}
			if pass == 0 && !v.Accepted {
				problems++
			}
			if rank == pass && len(out) < maxListed && left > 0 {
				state := targetState(v)
				if left.spend(textSize(state)) {
					out[v.Destination.Key()] = state
				}
			}
		}
	}
	return out, problems
}

func targetState(v *snapshot.Verdict) commonv1.ApprovalStatus {
	out := commonv1.ApprovalStatus{State: commonv1.ApprovalStateInvalid}
	if v.Accepted {
		out.State, out.AcceptanceOrder = commonv1.ApprovalStateAccepted, v.Order
	}
	for _, issue := range v.Issues[:min(len(v.Issues), 10)] {
		if issue.Severity == snapshot.Error {
			out.Errors = append(out.Errors, clip(issue.Text()))
		} else {
			out.Warnings = append(out.Warnings, clip(issue.Text()))
		}
	}
	return out
}

func textSize(s commonv1.ApprovalStatus) int {
	n := 0
	for _, text := range s.Errors {
		n += len(text)
	}
	for _, text := range s.Warnings {
		n += len(text)
	}
	return n
}

// virtualMeshStatuses judges VirtualMeshes; a change anywhere in federation
// makes a new plan of them, so there is nothing to keep.
func virtualMeshStatuses(plan *snapshot.Plan, failures map[snapshot.Ref][]snapshot.Failure) []*snapshot.Status {
	federated := map[snapshot.Ref][]snapshot.Verdict{}
	for d := range plan.Destinations.All() {
		if d.Federation != nil {
			vm := d.Federation.Origin.Ref
			federated[vm] = append(federated[vm], snapshot.Verdict{Destination: d.Ref, Accepted: true})
		}
	}
	out := make([]*snapshot.Status, 0, len(plan.VirtualMeshes))
	for _, vm := range plan.VirtualMeshes {
		out = append(out, virtualMeshStatus(vm, federated[vm.Ref], failures[vm.Ref]))
	}
	return out
}

func virtualMeshStatus(vm *snapshot.VirtualMeshPlan, federated []snapshot.Verdict, failures []snapshot.Failure) *snapshot.Status {
	meshes := map[string]commonv1.ApprovalStatus{}
	left := budget(meshBudget)
	unsaid := 0
	for _, member := range vm.Members {
		meshes[member.Ref.Key()] = commonv1.ApprovalStatus{State: commonv1.ApprovalStateAccepted}
	}
	var whole []snapshot.Issue
	problems := map[string]bool{}
	for _, issue := range vm.Issues {
		if issue.Target == (snapshot.Ref{}) {
			whole = append(whole, issue)
			continue
		}
		key, text := issue.Target.Key(), clip(issue.Text())
		said := left.spend(len(text))
		state, listed := meshes[key]
		switch {
		case issue.Severity == snapshot.Error:
			problems[key] = true
			state.State = commonv1.ApprovalStateInvalid
			if said {
				state.Errors = append(state.Errors, text)
			}
		case said:
			state.Warnings = append(state.Warnings, text)
		}
		if !said {
			unsaid++
		}
		if said || listed {
			meshes[key] = state
		}
	}
	s := summarize(federated, whole, failures)
	s.counts.Meshes, s.counts.Problems = int32(len(vm.Members)), int32(len(problems))
	if len(problems) > 0 && s.state == commonv1.ApprovalStateAccepted {
		s.state = commonv1.ApprovalStateInvalid
	}
	if unsaid > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("meshes: %d more issues are not listed", unsaid))
	}
	slices.Sort(s.warnings)
	return &snapshot.Status{Ref: vm.Ref, Value: &networkingv1.VirtualMeshStatus{
		ObservedGeneration: vm.VirtualMesh.Generation, State: s.state, Errors: s.errors, Warnings: s.warnings,
		Meshes: meshes, Destinations: s.destinations, Counts: s.counts, ProxyLoads: proxyLoads(vm.Loads),
	}}
}

// maxLoads bounds the meshes whose proxies' load a status has.
const maxLoads = 10

func proxyLoads(loads []snapshot.ProxyLoad) []networkingv1.ProxyLoad {
	var out []networkingv1.ProxyLoad
	for _, l := range loads[:min(len(loads), maxLoads)] {
		out = append(out, networkingv1.ProxyLoad{
			Mesh:           commonv1.ObjectRef{Name: l.Mesh.Name, Namespace: l.Mesh.Namespace},
			ServiceEntries: int32(l.ServiceEntries), Endpoints: int32(l.Endpoints),
		})
	}
	return out
}
