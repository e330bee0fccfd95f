package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Problem is an issue in a list, with since when it is there.
type Problem struct {
	snapshot.Issue
	// Help is the command that explains the code.
	Help string `json:"help"`
	// Since is since when the object is not ready, as the server dated it in status.conditions; zero if that is
	// not known, or if the object is ready and the issue is a warning.
	Since time.Time `json:"since,omitzero"`
}

// MarshalJSON implements json.Marshaler: that of the issue knows no Since.
func (p Problem) MarshalJSON() ([]byte, error) {
	type fields snapshot.Issue
	data, err := json.Marshal(struct {
		fields
		Help  string    `json:"help"`
		Since time.Time `json:"since,omitzero"`
	}{fields(p.Issue), p.Help, p.Since})
	if err != nil {
		return nil, fmt.Errorf("problem %s: write as JSON: %w", p.Code, err)
	}
	return data, nil
}

// together is how far apart problems are dated at most that one change brought about: each is when its status was written.
const together = 5 * time.Second

// ProblemList lists all issues that there are at a time, worst first, and of one severity the newest first. Those that nobody has
// dated come last. Those that came together, none of them more than a few seconds after the one before, are in the order of issues: a
// cause, such as a VirtualMesh, is before the policies for which it has consequences.
func ProblemList(x *Index, now time.Time) []Problem {
	issues := IssuesAt(x, now)
	out := make([]Problem, len(issues))
	for i, issue := range issues {
		out[i] = Problem{Issue: issue, Help: issue.Code.Help(), Since: issueSince(x, &issue)}
	}
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), b.Since.Compare(a.Since))
	})
	for begin, end := 0, 0; begin < len(out); begin = end {
		for end = begin + 1; end < len(out) && out[end].Severity == out[begin].Severity && out[end-1].Since.Sub(out[end].Since) <= together; end++ {
		}
		slices.SortFunc(out[begin:end], func(a, b Problem) int { return a.Issue.Compare(b.Issue) })
	}
	return out
}

// issueSince is since when an issue is there; zero if that is not known.
func issueSince(x *Index, issue *snapshot.Issue) time.Time {
	ref := issue.Ref
	if ref.Kind == snapshot.KubernetesCluster {
		ref = x.clusterRef(ref.Name)
	}
	switch {
	case issue.Code == snapshot.FieldConflict:
		return conditionSince(x, ref, commonv1.ConditionConflicted, metav1.ConditionTrue)
	case issue.Severity == snapshot.Error:
		if at := reasonSince(x, ref, issue.Code); !at.IsZero() {
			return at
		}
		return conditionSince(x, ref, commonv1.ConditionReady, metav1.ConditionFalse)
	}
	return time.Time{}
}

// reasonSince is since when a code is the reason for which a condition of an object does not hold; zero if it is of none.
func reasonSince(x *Index, ref snapshot.Ref, code snapshot.Code) time.Time {
	o := x.state.Input.Find(ref)
	if o == nil {
		return time.Time{}
	}
	for _, c := range snapshot.ConditionsOf(o) {
		if c.Status == metav1.ConditionFalse && c.Reason == string(code) {
			return c.LastTransitionTime.UTC()
		}
	}
	return time.Time{}
}

// stateSince is since when an object is ready, or is not, as the server dated it; zero if nobody has, or if the server says
// something else than the caller.
func stateSince(x *Index, ref snapshot.Ref, ready bool) time.Time {
	if ready {
		return conditionSince(x, ref, commonv1.ConditionReady, metav1.ConditionTrue)
	}
	return conditionSince(x, ref, commonv1.ConditionReady, metav1.ConditionFalse)
}

// conditionSince is since when a condition in the stored status of an object is what it is asked for; zero if it is not.
func conditionSince(x *Index, ref snapshot.Ref, condition string, status metav1.ConditionStatus) time.Time {
	o := x.state.Input.Find(ref)
	if o == nil {
		return time.Time{}
	}
	for _, c := range snapshot.ConditionsOf(o) {
		if c.Type == condition && c.Status == status {
			return c.LastTransitionTime.UTC()
		}
	}
	return time.Time{}
}

// sinceColumns is the column SINCE; none if no item has a time.
func sinceColumns[T any](items []T, priority int, at func(*T) time.Time) []column[T] {
	for i := range items {
		if !at(&items[i]).IsZero() {
			return []column[T]{since("SINCE", priority, at)}
		}
	}
	return nil
}
