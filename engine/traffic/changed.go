package traffic

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Settles is how long after a policy is seen to be in force as it is now requests may still be counted that went by
// what was before: control planes pass it on, and what proxies count is read every Point.
const Settles = 2 * Point

// Changed is since when a policy, or a VirtualMesh, is in force as it is now: requests that were counted before went by something else.
type Changed struct {
	On    snapshot.Ref `json:"on"`
	Since time.Time    `json:"since"`
}

// Versions notes since when policies and VirtualMeshes are in force as they are. The zero value knows of none.
type Versions struct {
	known map[snapshot.Ref]version
}

// version is what differs if what is in force may do so.
type version struct {
	uid        types.UID
	generation int64
	inForce    bool
	since      time.Time
}

// Note compares a translation with the one before. Those of the first translation are not new.
func (v *Versions) Note(state *snapshot.State, now time.Time) {
	was := v.known
	v.known = map[snapshot.Ref]version{}
	note := func(ref snapshot.Ref) {
		o := state.Input.Find(ref)
		if o == nil {
			return
		}
		is := version{uid: o.GetUID(), generation: o.GetGeneration(), inForce: meta.IsStatusConditionTrue(snapshot.ConditionsOf(o), commonv1.ConditionInForce)}
		before, known := was[ref]
		switch is.since = before.since; {
		case was == nil:
		case !known, is != before:
			is.since = now
		}
		v.known[ref] = is
	}
	for _, p := range state.Plan.Policies {
		note(p.Ref)
	}
	for _, m := range state.Plan.VirtualMeshes {
		note(m.Ref)
	}
}

// After are those that changed after a time, ascending.
func (v *Versions) After(at time.Time) (out []Changed) {
	for ref, is := range v.known {
		if is.since.After(at) {
			out = append(out, Changed{ref, is.since.UTC()})
		}
	}
	slices.SortFunc(out, func(a, b Changed) int { return a.On.Compare(b.On) })
	return out
}
