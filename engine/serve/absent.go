package serve

import (
	"maps"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// absences are the meshes whose control plane is not there: they stay for a grace period,
// in case it comes back. The engine has no clock.
type absences struct {
	since map[string]time.Time
	gone  map[string]bool
}

func newAbsences() *absences {
	return &absences{since: map[string]time.Time{}, gone: map[string]bool{}}
}

// mark says in an Input which meshes are gone for good.
func (a *absences) mark(in *snapshot.Input) *snapshot.Input {
	if len(a.gone) == 0 {
		return in
	}
	out := *in
	out.Gone = slices.Sorted(maps.Keys(a.gone))
	return &out
}

// update looks at a translation, and says when to look again: at a mesh that is gone by
// then. It returns nil if there is none.
func (a *absences) update(state *snapshot.State, now time.Time) <-chan time.Time {
	absent, found, stored := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, d := range state.Discovered {
		for _, name := range d.Absent {
			absent[name] = true
		}
		for _, m := range d.Meshes {
			found[m.Name] = true
		}
	}
	for _, m := range state.Input.Management.Meshes {
		stored[m.Name] = true
	}
	maps.DeleteFunc(a.since, func(name string, _ time.Time) bool { return !absent[name] })
	maps.DeleteFunc(a.gone, func(name string, _ bool) bool { return found[name] || !stored[name] })
	var next time.Duration = -1
	for name := range absent {
		if _, known := a.since[name]; !known {
			a.since[name] = now
		}
		left := max(0, a.since[name].Add(state.Output.Withdrawals.Grace).Sub(now))
		if left == 0 {
			a.gone[name] = true
		}
		if next < 0 || left < next {
			next = left
		}
	}
	if next < 0 {
		return nil
	}
	return time.After(next)
}
