package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// settingsIssues reports what has no effect in Settings: everything if older ones are
// in force, else the fields that no mesh supports.
func settingsIssues(m *snapshot.Management, s *settingsv1.Settings, dialects []*snapshot.Dialect) []snapshot.Issue {
	warn := func(hint, message string) snapshot.Issue {
		return snapshot.Issue{
			Code: snapshot.FieldUnsupported, Severity: snapshot.Warning, Ref: snapshot.RefOf(snapshot.Settings, s), Message: message, Hint: hint,
		}
	}
	holds := virtualmesh.SettingsInForce(m)
	if holds != s && s.Namespace != m.Namespace {
		return []snapshot.Issue{warn("put them into namespace "+m.Namespace, "they have no effect: only Settings in namespace "+m.Namespace+" count")}
	}
	if holds != s {
		return []snapshot.Issue{warn("remove one of the two", "they have no effect: the older Settings "+holds.Name+"."+holds.Namespace+" are in force").
			CausedBy(snapshot.RefOf(snapshot.Settings, holds))}
	}
	var out []snapshot.Issue
	if s.Namespace != m.Namespace {
		out = append(out, warn("put them into namespace "+m.Namespace, "they are in force only because they were before Settings had to be there, and say nothing of policyNamespaces"))
	}
	for _, path := range snapshot.FieldsIn(&s.Spec) {
		var without []snapshot.Support
		for _, d := range dialects {
			if support, ok := d.Of(snapshot.Settings, path, ""); ok && support.Level == snapshot.NotExpressible {
				without = append(without, support)
			}
		}
		if len(without) < len(dialects) {
			continue
		}
		issue := warn("remove it", without[0].Path+" has no effect: "+without[0].Note).At(without[0].Path)
		if !slices.Contains(out, issue) {
			out = append(out, issue)
		}
	}
	return out
}

// inUse are the dialects of the existing meshes; all of them if there are no meshes.
func inUse(all []*snapshot.Dialect, meshes []*snapshot.MeshPlan) []*snapshot.Dialect {
	var out []*snapshot.Dialect
	for _, d := range all {
		if slices.ContainsFunc(meshes, func(m *snapshot.MeshPlan) bool { return m.Dialect == d }) {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// settingsStatuses are the statuses of Settings, ascending by Ref.
type settingsStatuses struct {
	from *snapshot.Management
	// dialects are the names of those that statuses was made for, and kept the namespaces.
	dialects []string
	kept     []string
	statuses []*snapshot.Status
}

func (s *settingsStatuses) update(m *snapshot.Management, dialects []*snapshot.Dialect) bool {
	var names []string
	for _, d := range dialects {
		names = append(names, d.Name)
	}
	kept := m.KeptNamespaces()
	if s.from != nil && snapshot.SameSlice(s.from.Settings, m.Settings) && s.from.Namespace == m.Namespace && slices.Equal(s.dialects, names) && slices.Equal(s.kept, kept) {
		return false
	}
	before := s.statuses
	s.from, s.dialects, s.kept, s.statuses = m, names, kept, nil
	for _, o := range m.Settings {
		status := &settingsv1.SettingsStatus{ObservedGeneration: o.Generation, State: commonv1.ApprovalStateAccepted}
		issues := settingsIssues(m, o, dialects)
		for _, issue := range issues {
			status.Warnings = append(status.Warnings, clip(issue.Text()))
		}
		status.Conditions = settingsConditions(o, issues, virtualmesh.SettingsInForce(m) == o)
		s.statuses = append(s.statuses, &snapshot.Status{Ref: snapshot.RefOf(snapshot.Settings, o), Value: status})
	}
	return keepEqual(before, s.statuses)
}

// settingsConditions tells, unlike the state, whether the Settings are those in force: issues say why not.
func settingsConditions(o *settingsv1.Settings, issues []snapshot.Issue, inForce bool) []metav1.Condition {
	list := conditionList{generation: o.Generation}
	holds := list.of(commonv1.ConditionInForce)
	if !inForce {
		holds.fail(commonv1.ReasonNotInForce, issues[0].Text())
		if issues[0].Cause.Kind == snapshot.Settings {
			list.add(commonv1.ConditionConflicted, commonv1.ReasonNotInForce, issues[0].Text())
		}
	}
	list.conclude(list.all(list.of(commonv1.ConditionAccepted), holds), false)
	return list.sorted()
}
