package engine

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// otherStatuses are those of kinds of which no object has a plan of its own.
type otherStatuses struct {
	from *snapshot.Management
	// spoken are the names of the dialects that settings are about.
	spoken   []string
	settings []*snapshot.Status // ascending by Ref
}

// noEffect is what users of a kind that is stored, but not translated, read.
const noEffect = "this version does not translate the kind: the object has no effect"

func (o *otherStatuses) update(m *snapshot.Management, meshes []*snapshot.MeshPlan) bool {
	dialects := spoken(meshes)
	var names []string
	for _, d := range dialects {
		names = append(names, d.Name)
	}
	if was := o.from; was != nil && sameSlice(was.Settings, m.Settings) && slices.Equal(o.spoken, names) {
		return false
	}
	before := o.settings
	o.from, o.spoken, o.settings = m, names, nil
	for _, s := range m.Settings {
		status := &settingsv1.SettingsStatus{ObservedGeneration: s.Generation, State: commonv1.ApprovalStateAccepted}
		for _, issue := range settingsIssues(m, s, dialects) {
			status.Warnings = append(status.Warnings, clip(issue.Text()))
		}
		o.settings = append(o.settings, &snapshot.Status{Ref: snapshot.RefOf(snapshot.Settings, s), Value: status})
	}
	return keepEqual(before, o.settings)
}
