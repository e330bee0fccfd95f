package status

import (
	"fmt"
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxErrors bounds the errors of one VirtualDestination in the status of a mesh.
const maxErrors = 3

func virtualDestinationStatus(p *snapshot.VirtualDestinationPlan, failures []snapshot.Failure) *snapshot.Status {
	meshes := map[string][]snapshot.Issue{}
	var whole []snapshot.Issue
	for _, issue := range p.AllIssues() {
		if issue.Target.Kind == snapshot.Mesh {
			meshes[issue.Target.Key()] = append(meshes[issue.Target.Key()], issue)
		} else {
			whole = append(whole, issue)
		}
	}
	s := summarize("", nil, whole, failures)
	status := &enterprisev1beta1.VirtualDestinationStatus{
		ObservedGeneration: p.VirtualDestination.Generation, Address: p.Address, Meshes: make(map[string]commonv1.ApprovalStatus, len(p.Views)),
	}
	left, more := budget(meshBudget), 0
	for _, view := range p.Views {
		verdict := snapshot.Verdict{Accepted: true, Issues: meshes[view.Mesh.Ref.Key()]}
		if unseen(view) {
			verdict.Issues = slices.Concat(verdict.Issues, errorsOf(whole))
		}
		for _, issue := range verdict.Issues {
			verdict.Accepted = verdict.Accepted && !issue.Rejects()
		}
		if !verdict.Accepted && s.state == commonv1.ApprovalStateAccepted {
			s.state = commonv1.ApprovalStateInvalid
		}
		if verdict.Accepted {
			s.causes.accepted++
		}
		state := targetState(&verdict)
		if len(status.Meshes) < maxListed && left.spend(textSize(state)) {
			status.Meshes[view.Mesh.Ref.Key()] = state
		} else {
			more++
		}
	}
	if more > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("meshes: %d more are not listed", more))
	}
	for i, b := range p.Backing {
		if i == maxListed {
			s.warnings = append(s.warnings, fmt.Sprintf("selectedDestinations: %d more are not listed", len(p.Backing)-maxListed))
			break
		}
		service := b.Destination.Spec.KubeService.Ref
		status.SelectedDestinations = append(status.SelectedDestinations, enterprisev1beta1.SelectedDestination{
			Ref: service, Destination: &enterprisev1beta1.BackingDestination{KubeService: &service},
		})
	}
	specs := budget(specBudget)
	for i, t := range p.RequiredSubsets {
		if !specs.spend(size(t.Spec.Policy)) {
			s.warnings = append(s.warnings, fmt.Sprintf("requiredSubsets: %d more are not listed", len(p.RequiredSubsets)-i))
			break
		}
		required := discoveryv1.RequiredSubsets{TrafficPolicyRef: objectRef(t.Policy), ObservedGeneration: t.Generation}
		if t.Spec.Policy != nil {
			required.TrafficShift = t.Spec.Policy.TrafficShift
		}
		status.RequiredSubsets = append(status.RequiredSubsets, required)
	}
	s.causes.nouns, s.causes.targets = "meshes", len(p.Views)
	s.causes.note(p.AllIssues())
	status.State, status.Errors, status.Warnings = s.state, s.errors, s.warnings
	status.Conditions = s.causes.conditions(p.VirtualDestination.Generation, s.state)
	return &snapshot.Status{Ref: p.Ref, Value: status}
}

// unseen reports whether a mesh does not see a VirtualDestination for reasons that do
// not concern this mesh alone.
func unseen(view *snapshot.VirtualView) bool {
	return len(view.Priorities) == 0 && len(errorsOf(view.Issues)) == 0
}

func errorsOf(issues []snapshot.Issue) []snapshot.Issue {
	return slices.DeleteFunc(slices.Clone(issues), func(i snapshot.Issue) bool { return i.Severity != snapshot.Error })
}

// exports are the VirtualDestinations that are exported to each mesh.
type exports struct {
	// observed are the meshes with what they see, and meshes what that was made from.
	meshes   snapshot.List[observed[*snapshot.MeshPlan]]
	observed snapshot.List[observedMesh]
	of       []*snapshot.VirtualDestinationPlan
	seen     map[snapshot.Ref]*visible
}

// visible is what is exported to one mesh.
type visible struct {
	list []discoveryv1.AppliedVirtualDestination
	// left bounds the text of errors.
	left budget
}

// observedMesh is a mesh with what is exported to it.
type observedMesh struct {
	observed[*snapshot.MeshPlan]
	visible *visible
}

// observe adds to each mesh what is exported to it.
func (e *exports) observe(meshes snapshot.List[observed[*snapshot.MeshPlan]]) snapshot.List[observedMesh] {
	if e.observed.Len() > 0 && e.meshes.Same(meshes) {
		return e.observed
	}
	out := make([]observedMesh, 0, meshes.Len())
	for m := range meshes.All() {
		out = append(out, observedMesh{m, e.seen[m.source.Ref]})
	}
	e.meshes, e.observed = meshes, snapshot.ListOf(out)
	return e.observed
}

// update lists the exports again if any VirtualDestination changed.
func (e *exports) update(plans []*snapshot.VirtualDestinationPlan) {
	if e.seen != nil && snapshot.SameSlice(e.of, plans) {
		return
	}
	seen := map[snapshot.Ref]*visible{}
	for _, p := range plans {
		if p.OfNamespace() {
			continue // a mesh does not have what one namespace of it sees; and those of the management cluster need the place
		}
		for _, view := range p.Views {
			at := seen[view.Mesh.Ref]
			if at == nil {
				at = &visible{left: meshBudget}
				seen[view.Mesh.Ref] = at
			}
			if len(at.list) < maxListed {
				at.list = append(at.list, at.applied(p, view))
			}
		}
	}
	for ref, now := range seen {
		if was := e.seen[ref]; was != nil && reflect.DeepEqual(was, now) {
			seen[ref] = was
		}
	}
	e.of, e.seen = plans, seen
	e.observed = snapshot.List[observedMesh]{}
}

func (v *visible) applied(p *snapshot.VirtualDestinationPlan, view *snapshot.VirtualView) discoveryv1.AppliedVirtualDestination {
	out := discoveryv1.AppliedVirtualDestination{Ref: objectRef(p.VirtualDestination), ObservedGeneration: p.VirtualDestination.Generation}
	issues := view.Issues
	if unseen(view) {
		issues = slices.Concat(issues, errorsOf(p.Issues))
	}
	for _, issue := range issues {
		if text := clip(issue.Text()); issue.Severity == snapshot.Error && len(out.Errors) < maxErrors && v.left.spend(len(text)) {
			out.Errors = append(out.Errors, text)
		}
	}
	return out
}
