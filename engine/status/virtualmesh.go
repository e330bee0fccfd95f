package status

import (
	"fmt"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// virtualMeshStatuses are the statuses of VirtualMeshes. Any change of the federation
// makes new plans of them, so nothing is cached. A Destination that other members
// cannot call has no text of its own: the reason is one of the whole VirtualMesh.
func virtualMeshStatuses(plan *snapshot.Plan, failures map[snapshot.Ref][]snapshot.Failure) []*snapshot.Status {
	federated := map[snapshot.Ref][]snapshot.Verdict{}
	for d := range plan.Destinations.All() {
		if d.Federation != nil {
			vm := d.Federation.Origin.Ref
			federated[vm] = append(federated[vm], snapshot.Verdict{Destination: d.Ref, Accepted: !snapshot.Rejected(d.Federation.Issues)})
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
	problems := map[string]bool{}
	add := func(on snapshot.Ref, issue snapshot.Issue) {
		key, text := on.Key(), clip(issue.Text())
		said := left.spend(len(text))
		state, listed := meshes[key]
		switch {
		case issue.Severity == snapshot.Error:
			if issue.Rejects() {
				problems[key] = true
				state.State = commonv1.ApprovalStateInvalid
			}
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
	var whole []snapshot.Issue
	for _, issue := range vm.Issues {
		if issue.Target.Kind != snapshot.Mesh {
			whole = append(whole, issue)
		} else {
			add(issue.Target, issue)
		}
	}
	if issue, found := vm.RootIssue(); found {
		for _, member := range vm.Divided {
			add(member, issue)
		}
	}
	s := summarize("destinations", federated, whole, failures)
	s.counts.Meshes, s.counts.Problems = int32(len(vm.Members)), int32(len(problems))
	if len(problems) > 0 && s.state == commonv1.ApprovalStateAccepted {
		s.state = commonv1.ApprovalStateInvalid
	}
	if s.state == commonv1.ApprovalStateAccepted && pendingTrust(vm) {
		s.state = commonv1.ApprovalStatePending
	}
	if unsaid > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("meshes: %d more issues are not listed", unsaid))
	}
	slices.Sort(s.warnings)
	s.causes.nouns, s.causes.accepted, s.causes.targets = "members", 0, len(vm.Members)
	for _, member := range vm.Members {
		if !problems[member.Ref.Key()] {
			s.causes.accepted++
		}
	}
	s.causes.note(vm.Issues)
	return &snapshot.Status{Ref: vm.Ref, Value: &networkingv1.VirtualMeshStatus{
		ObservedGeneration: vm.VirtualMesh.Generation, State: s.state, Errors: s.errors, Warnings: s.warnings,
		Meshes: meshes, Destinations: s.destinations, Counts: s.counts, ProxyLoads: proxyLoads(vm.Loads),
		OpenGateways: openGateways(vm), Trust: trustStatus(vm.Trust), Conditions: s.causes.conditions(vm.VirtualMesh.Generation, s.state),
	}}
}

// maxOpenGateways bounds the open gateways in a status.
const maxOpenGateways = 100

func openGateways(vm *snapshot.VirtualMeshPlan) []commonv1.ClusterObjectRef {
	var out []commonv1.ClusterObjectRef
	for _, mesh := range vm.Members {
		for _, gw := range mesh.OpenGateways {
			out = append(out, commonv1.ClusterObjectRef{Name: gw.Service.Name, Namespace: gw.Service.Namespace, ClusterName: gw.Service.Cluster})
		}
	}
	return out[:min(len(out), maxOpenGateways)]
}

// maxLoads bounds the proxy loads in a status.
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
