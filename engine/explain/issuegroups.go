package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// MergedIssue is an issue, said once for all targets on which it is the same.
type MergedIssue struct {
	snapshot.Issue
	// On are the targets, in the order of the issues; empty if it is about the object as a whole.
	On []snapshot.Ref
	// Since is when it began, as far as the status of the object tells; see Problem.
	Since time.Time
}

// Sentence is the message with its code, and since when it is so.
func (m *MergedIssue) Sentence() string {
	return m.Message + prefixed("; since ", timeText(m.Since)) + " (" + string(m.Code) + ")"
}

// Summary is object and sentence in one line.
func (m *MergedIssue) Summary() string {
	if object := m.Object(); object != "" {
		return object + ": " + m.Sentence()
	}
	return m.Sentence()
}

// maxTargetsNamed bounds the targets that a line names.
const maxTargetsNamed = 3

// OnText names the first targets: "reviews-bookinfo-cluster-1, details-bookinfo-cluster-1 and 2 more targets"; empty if there is none.
func (m *MergedIssue) OnText() string {
	var names []string
	for _, on := range m.On[:min(len(m.On), maxTargetsNamed)] {
		names = append(names, on.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(m.On) - maxTargetsNamed; more > 0 {
		text += " and " + snapshot.Count(more, "more target")
	}
	return text
}

// Object names the object and its targets.
func (m *MergedIssue) Object() string {
	text := strings.TrimSpace(m.Ref.String())
	if on := m.OnText(); on != "" {
		text += " on " + on
	}
	return text
}

// MergeIssues says each sentence of an object once. The order is that of the first of each.
func MergeIssues(issues []snapshot.Issue) []MergedIssue {
	type sentence struct {
		ref           snapshot.Ref
		code          snapshot.Code
		severity      snapshot.Severity
		message, hint string
	}
	at := map[sentence]int{}
	var out []MergedIssue
	for _, issue := range issues {
		key := sentence{issue.Ref, issue.Code, issue.Severity, issue.Message, issue.Hint}
		i, said := at[key]
		if !said {
			i = len(out)
			at[key], out = i, append(out, MergedIssue{Issue: issue})
		}
		if on := issue.Target; on != (snapshot.Ref{}) && on != issue.Ref && !slices.Contains(out[i].On, on) {
			out[i].On = append(out[i].On, on)
		}
	}
	return out
}

// IssueGroup is what is wrong with one object.
type IssueGroup struct {
	Ref snapshot.Ref
	// State says on how many of its targets the object is in force; empty if it has none, or if it is wrong as a whole.
	State string
	// Issues are its issues, worst first.
	Issues []MergedIssue
}

// Title names the object, and says on how many of its targets it is in force.
func (g *IssueGroup) Title() string {
	return strings.TrimSpace(g.Ref.String()) + ": " + cmp.Or(g.State, snapshot.Count(len(g.Issues), "issue"))
}

// GroupIssues groups issues by their objects, in the order of the worst issue of each. An issue without an object is a
// group of its own. Those that pass by themselves are left out and counted: see Passes.
func GroupIssues(x *Index, issues []snapshot.Issue) (groups []IssueGroup, passing int) {
	at := map[snapshot.Ref]int{}
	for _, issue := range MergeIssues(issues) {
		if Passes(issue.Issue) {
			passing += max(len(issue.On), 1)
			continue
		}
		i, known := at[issue.Ref]
		if !known || issue.Ref == (snapshot.Ref{}) {
			i = len(groups)
			at[issue.Ref], groups = i, append(groups, IssueGroup{Ref: issue.Ref, State: inForceText(x, issue.Ref)})
		}
		issue.Since = issueSince(x, &issue.Issue)
		groups[i].Issues = append(groups[i].Issues, issue)
	}
	return groups, passing
}

// Passes reports whether an issue is an info about something that goes away without anybody, such as an object that serve is
// about to delete. Text lists count these.
func Passes(issue snapshot.Issue) bool {
	return issue.Severity == snapshot.Info && issue.Code.Class() == snapshot.ClassRuntime
}

// PassingText counts infos that pass by themselves.
func PassingText(n int) string {
	return snapshot.Count(n, "info") + " about what passes by itself"
}

// lasting are the issues that do not pass by themselves.
func lasting(issues []snapshot.Issue) []snapshot.Issue {
	if !slices.ContainsFunc(issues, Passes) {
		return issues
	}
	return slices.DeleteFunc(slices.Clone(issues), Passes)
}

// inForceText says on how many of its targets a policy is in force; empty for other objects, and for one that is wrong as a whole:
// that it is in force on all that it selects would hide that it selects less than was meant.
func inForceText(x *Index, ref snapshot.Ref) string {
	if slices.ContainsFunc(x.issues[ref], func(i snapshot.Issue) bool {
		return i.Severity == snapshot.Error && i.Ref == ref && (i.Target == snapshot.Ref{} || i.Target == ref)
	}) {
		return ""
	}
	var verdicts []snapshot.Verdict
	switch {
	case x.policies[ref] != nil:
		verdicts = x.policies[ref].Verdicts
	case x.dependencies[ref] != nil:
		verdicts = x.dependencies[ref].Verdicts
	}
	if len(verdicts) == 0 {
		return ""
	}
	n := 0
	for i := range verdicts {
		if state, _ := x.targetState(ref, &verdicts[i]); state == "ACCEPTED" && snapshot.Unmet(verdicts[i].Issues) == nil {
			n++
		}
	}
	return fmt.Sprintf("in force on %d of %d", n, len(verdicts))
}
