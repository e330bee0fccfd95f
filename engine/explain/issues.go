package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// issuesOf lists the issues of and on an object, worst first.
func (x *Index) issuesOf(refs ...snapshot.Ref) []snapshot.Issue {
	issues := []snapshot.Issue{}
	for _, ref := range refs {
		issues = append(issues, x.issues[ref]...)
	}
	slices.SortFunc(issues, snapshot.Issue.Compare)
	return slices.Compact(issues)
}

// issuesAbout lists the issues of an object on a target, worst first.
func (x *Index) issuesAbout(ref, target snapshot.Ref) []snapshot.Issue {
	return slices.DeleteFunc(x.issuesOf(ref), func(i snapshot.Issue) bool { return i.Target != target })
}

// spreadRootIssues adds an issue about roots that differ to all on which it matters:
// the members that it is about, and their federated services. It is one issue of the
// VirtualMesh, however many they are.
func (x *Index) spreadRootIssues() {
	for _, v := range x.state.Plan.VirtualMeshes {
		if issue, found := v.RootIssue(); found {
			for _, member := range v.Divided {
				x.issues[member] = append(x.issues[member], issue)
			}
		}
	}
	for d := range x.state.Plan.Destinations.All() {
		if d.Federation != nil {
			x.issues[d.Ref] = append(x.issues[d.Ref], d.Federation.Issues...)
		}
	}
}

// inheritIssues adds the issues of generated objects, such as a rejected write, to
// the objects that can be described: what the object was made for, and its parents.
func (x *Index) inheritIssues() {
	for part := range x.state.Output.Parts.All() {
		for _, o := range part.Objects {
			issues := x.issues[o.Ref]
			if len(issues) == 0 || discovered(o.Ref.Kind) {
				continue
			}
			for _, made := range part.Objects {
				if discovered(made.Ref.Kind) {
					x.issues[made.Ref] = append(x.issues[made.Ref], issues...)
				}
			}
			for _, parent := range o.Content.Parents {
				x.issues[parent] = append(x.issues[parent], issues...)
			}
		}
	}
}

// discovered reports the kinds for which other objects are made.
func discovered(kind snapshot.Kind) bool {
	return kind == snapshot.Mesh || kind == snapshot.Workload || kind == snapshot.Destination
}

// worst names the worst issue for a cell of a summary.
func worst(issues []snapshot.Issue) string {
	if len(issues) == 0 {
		return ""
	}
	n := 0
	for _, issue := range issues {
		if issue.Severity == issues[0].Severity {
			n++
		}
	}
	return snapshot.Count(n, issues[0].Severity.String())
}
