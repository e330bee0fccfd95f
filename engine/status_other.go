package engine

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// otherStatuses are those of kinds that no plan is made of.
type otherStatuses struct {
	from     *snapshot.Management
	settings []*snapshot.Status // ascending by Ref
}

// noEffect is what users of a kind that is stored, but not translated, read.
const noEffect = "this version does not translate the kind: the object has no effect"

func (o *otherStatuses) update(m *snapshot.Management) bool {
	if was := o.from; was != nil && sameSlice(was.Settings, m.Settings) {
		return false
	}
	o.from, o.settings = m, nil
	for _, s := range m.Settings {
		status := &settingsv1.SettingsStatus{ObservedGeneration: s.Generation, State: commonv1.ApprovalStateAccepted}
		for _, issue := range settingsIssues(m, s) {
			status.Warnings = append(status.Warnings, clip(issue.Text()))
		}
		o.settings = append(o.settings, &snapshot.Status{Ref: snapshot.RefOf(snapshot.Settings, s), Value: status})
	}
	return true
}
