package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxClustersNamed bounds the clusters that a condition names.
const maxClustersNamed = 5

// causes are what the conditions of a resource tell beside its state.
type causes struct {
	// rejection is the first reason why it is not accepted, conflict the first conflict that it lost, and
	// unmet the first reason why it is not in force although it is accepted; nil if there is none.
	rejection, conflict, unmet *snapshot.Issue
	failures                   []snapshot.Failure
	// nouns says in the plural what the resource is accepted on; accepted of targets accept it.
	// Empty if it is accepted or rejected as a whole.
	nouns             string
	accepted, targets int
	// audited: the resource only has meshctl say what it would do.
	audited bool
}

// note notes the first of each among issues.
func (c *causes) note(issues []snapshot.Issue) {
	for i := range issues {
		issue := &issues[i]
		if c.rejection == nil && issue.Rejects() {
			c.rejection = issue
		}
		if c.conflict == nil && isConflict(issue.Code) {
			c.conflict = issue
		}
	}
	if c.unmet == nil {
		c.unmet = snapshot.Unmet(issues)
	}
}

// isConflict reports whether an issue says that somebody else has what the resource asks for.
func isConflict(code snapshot.Code) bool {
	return code == snapshot.FieldConflict || code == snapshot.MeshClaimed || code == snapshot.HostnameTaken
}

// conditions are the conditions of a resource in a state.
func (c *causes) conditions(generation int64, state commonv1.ApprovalState) []metav1.Condition {
	list := conditionList{generation: generation}
	rejected := c.rejection != nil || c.accepted < c.targets || state == commonv1.ApprovalStateInvalid
	accepted := list.of(commonv1.ConditionAccepted)
	if rejected {
		accepted.fail(commonv1.ReasonNotAccepted, c.shareText())
		if c.rejection != nil {
			accepted.fail(string(c.rejection.Code), c.rejection.Text())
		}
	}
	inForce := list.of(commonv1.ConditionInForce)
	switch {
	case len(c.failures) > 0:
		inForce.fail(string(c.failures[0].Code), "not in force as written in "+clustersText(c.failures)+": "+c.failures[0].Reason.String())
	case rejected:
		inForce.fail(commonv1.ReasonNotAccepted, c.shareText())
	case c.unmet != nil:
		inForce.fail(string(c.unmet.Code), c.unmet.Text())
	case state == commonv1.ApprovalStatePending:
		inForce.fail(string(snapshot.TrustPending), "members do not trust each other yet")
	case c.audited:
		inForce.Reason, inForce.Message = commonv1.ReasonAudited, "its enforcement is AUDIT: it refuses and allows nothing"
	case c.nouns != "" && c.targets == 0:
		inForce.Reason, inForce.Message = string(snapshot.SelectsNothing), "it applies to no "+strings.TrimSuffix(c.nouns, "s")
	}
	waits := !rejected && (state == commonv1.ApprovalStatePending ||
		!slices.ContainsFunc(c.failures, func(f snapshot.Failure) bool { return f.Code != snapshot.ClusterAwaited }))
	list.conclude(list.all(accepted, inForce), waits)
	if c.conflict != nil {
		list.add(commonv1.ConditionConflicted, string(c.conflict.Code), c.conflict.Text())
	} else if at := slices.IndexFunc(c.failures, func(f snapshot.Failure) bool { return f.Code == snapshot.ForeignObject }); at >= 0 {
		list.add(commonv1.ConditionConflicted, string(snapshot.ForeignObject), fmt.Sprintf("%s: %s", c.failures[at].Ref, c.failures[at].Reason))
	}
	return list.sorted()
}

func (c *causes) shareText() string {
	if c.nouns == "" || c.targets == 0 {
		return ""
	}
	return fmt.Sprintf("accepted on %d of %d %s", c.accepted, c.targets, c.nouns)
}

// clustersText names the first clusters of failures.
func clustersText(failures []snapshot.Failure) string {
	var names []string
	for _, f := range failures {
		name := cmp.Or(f.Ref.Cluster, "the management cluster")
		if f.Ref.Kind == snapshot.KubernetesCluster {
			name = f.Ref.Name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	more := len(names) - maxClustersNamed
	text := strings.Join(names[:min(len(names), maxClustersNamed)], ", ")
	if more > 0 {
		text += " and " + snapshot.Count(more, "more cluster")
	}
	return text
}

// conditionList makes conditions of one generation. None has a time: who writes the status
// sets it.
type conditionList struct {
	generation int64
	made       []metav1.Condition
}

// condition is True until it fails.
type condition struct{ metav1.Condition }

func (l *conditionList) of(name string) *condition {
	return &condition{metav1.Condition{Type: name, Status: metav1.ConditionTrue, ObservedGeneration: l.generation, Reason: name}}
}

func (c *condition) fail(reason, message string) {
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, clip(message)
}

// add adds a condition that is True, and of which users should know.
func (l *conditionList) add(name, reason, message string) {
	c := l.of(name)
	c.Reason, c.Message = reason, clip(message)
	l.made = append(l.made, c.Condition)
}

// all adds conditions, and is Ready: True if all of them are.
func (l *conditionList) all(parts ...*condition) *condition {
	ready := l.of(commonv1.ConditionReady)
	for _, part := range parts {
		l.made = append(l.made, part.Condition)
		if part.Status != metav1.ConditionTrue && ready.Status == metav1.ConditionTrue {
			ready.fail(part.Reason, part.Message)
		}
	}
	return ready
}

// conclude adds Ready. If it is not True, it also adds, for kstatus, whether the resource waits for
// something (Reconciling) or for somebody (Stalled).
func (l *conditionList) conclude(ready *condition, waits bool) {
	l.made = append(l.made, ready.Condition)
	switch {
	case ready.Status == metav1.ConditionTrue:
	case waits:
		l.add(commonv1.ConditionReconciling, ready.Reason, ready.Message)
	default:
		l.add(commonv1.ConditionStalled, ready.Reason, ready.Message)
	}
}

func (l *conditionList) sorted() []metav1.Condition {
	slices.SortFunc(l.made, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return l.made
}
