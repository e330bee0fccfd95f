package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// issueBook has issues by the objects that they are of, on, or matter to.
type issueBook map[snapshot.Ref][]snapshot.Issue

func newIssueBook(state *snapshot.State) issueBook {
	b := issueBook{}
	for _, issue := range state.Output.Issues {
		b.add(issue, issue.Ref)
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			b.add(issue, issue.Target)
		}
	}
	b.spread(state.Plan)
	b.inherit(state.Output)
	return b
}

// add adds an issue to what objects have.
func (b issueBook) add(issue snapshot.Issue, refs ...snapshot.Ref) {
	for _, ref := range refs {
		b[ref] = append(b[ref], issue)
	}
}

// of lists the issues of and on objects, worst first.
func (b issueBook) of(refs ...snapshot.Ref) []snapshot.Issue {
	issues := []snapshot.Issue{}
	for _, ref := range refs {
		issues = append(issues, b[ref]...)
	}
	slices.SortFunc(issues, snapshot.Issue.Compare)
	return slices.Compact(issues)
}

// about lists the issues of an object on a target, worst first.
func (b issueBook) about(ref, target snapshot.Ref) []snapshot.Issue {
	return slices.DeleteFunc(b.of(ref), func(i snapshot.Issue) bool { return i.Target != target })
}

// drop removes issues.
func (b issueBook) drop(gone func(snapshot.Issue) bool) {
	for ref, issues := range b {
		b[ref] = slices.DeleteFunc(issues, gone)
	}
}

// spread adds an issue about roots that differ to all on which it matters:
// the members that it is about, and their federated services. It is one issue of the
// VirtualMesh, however many they are.
func (b issueBook) spread(plan *snapshot.Plan) {
	for _, v := range plan.VirtualMeshes {
		if issue, found := v.RootIssue(); found {
			b.add(issue, v.Divided...)
		}
	}
	for d := range plan.Destinations.All() {
		if d.Federation != nil {
			b[d.Ref] = append(b[d.Ref], d.Federation.Issues...)
		}
	}
}

// inherit adds the issues of generated objects, such as a rejected write, to
// the objects that can be described: what the object was made for, and its parents.
func (b issueBook) inherit(out *snapshot.Output) {
	for part := range out.Parts.All() {
		for _, o := range part.Objects {
			issues := b[o.Ref]
			if len(issues) == 0 || discovered(o.Ref.Kind) {
				continue
			}
			for _, made := range part.Objects {
				if discovered(made.Ref.Kind) {
					b[made.Ref] = append(b[made.Ref], issues...)
				}
			}
			for _, parent := range o.Content.Parents {
				b[parent] = append(b[parent], issues...)
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
