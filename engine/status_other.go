package engine

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// otherStatuses are those of kinds that no plan is made of.
type otherStatuses struct {
	from *snapshot.Management
	// settings and enterprise are each ascending by Ref.
	settings, enterprise []*snapshot.Status
}

// noEffect is what users of a kind that is stored, but not translated, read.
const noEffect = "this version does not translate the kind: the object has no effect"

func (o *otherStatuses) update(m *snapshot.Management) bool {
	if was := o.from; was != nil && sameSlice(was.Settings, m.Settings) && sameSlice(was.VirtualDestinations, m.VirtualDestinations) {
		return false
	}
	o.from, o.settings, o.enterprise = m, nil, nil
	for _, s := range m.Settings {
		o.settings = append(o.settings, &snapshot.Status{Ref: snapshot.RefOf(snapshot.Settings, s), Value: &settingsv1.SettingsStatus{
			ObservedGeneration: s.Generation, State: commonv1.ApprovalStateAccepted,
		}})
	}
	for _, v := range m.VirtualDestinations {
		o.enterprise = append(o.enterprise, &snapshot.Status{Ref: snapshot.RefOf(snapshot.VirtualDestination, v), Value: &enterprisev1beta1.VirtualDestinationStatus{
			ObservedGeneration: v.Generation, State: commonv1.ApprovalStateInvalid, Errors: []string{noEffect},
		}})
	}
	return true
}
