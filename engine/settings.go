package engine

import (
	"slices"

	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// settingsIssues says what of some Settings has no effect: all of it, if older
// ones hold; else what none of the meshes can make anything of.
func settingsIssues(m *snapshot.Management, s *settingsv1.Settings, dialects []*snapshot.Dialect) []snapshot.Issue {
	warn := func(hint, message string) snapshot.Issue {
		return snapshot.Issue{
			Code: snapshot.FieldUnsupported, Severity: snapshot.Warning, Ref: snapshot.RefOf(snapshot.Settings, s), Message: message, Hint: hint,
		}
	}
	if holds := virtualmesh.SettingsInForce(m.Settings); holds != s {
		return []snapshot.Issue{warn("remove one of the two", "they have no effect: the older Settings "+holds.Name+"."+holds.Namespace+" hold")}
	}
	var out []snapshot.Issue
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
		issue := warn("remove it if that matters", without[0].Path+" has no effect: "+without[0].Note)
		if !slices.Contains(out, issue) {
			out = append(out, issue)
		}
	}
	return out
}

// spoken are the dialects of the meshes that there are; all, while there are none.
func spoken(meshes []*snapshot.MeshPlan) []*snapshot.Dialect {
	all := Dialects()
	var out []*snapshot.Dialect
	for _, d := range all {
		if slices.ContainsFunc(meshes, func(m *snapshot.MeshPlan) bool { return d.Speaks(&m.Mesh.Spec) }) {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}
