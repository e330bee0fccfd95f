package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bindPolicies finds the Destinations that each policy selects, and adds the policy
// to their states. If the environment did not change, only changed policies are
// bound.
func (r *reconciler) bindPolicies() {
	r.bindTrafficPolicies()
	r.bindAccessPolicies()
	if !r.rebuilt {
		return
	}
	for _, s := range r.states {
		slices.SortFunc(s.traffic, byAge)
	}
}

func byAge(a, b *trafficBinding) int { return inventory.CompareAge(a.policy, b.policy) }

func (r *reconciler) bindTrafficPolicies() {
	if !r.rebuilt && snapshot.SameSlice(r.last.traffic, r.next.traffic) {
		return
	}
	old := r.traffic
	r.traffic = make([]*trafficBinding, 0, len(r.next.traffic))
	at := 0
	for _, p := range r.next.traffic {
		ref := snapshot.RefOf(snapshot.TrafficPolicy, p)
		for ; at < len(old) && old[at].ref.Compare(ref) < 0; at++ {
			r.removeTrafficBinding(old[at])
		}
		var was *trafficBinding
		if at < len(old) && old[at].ref == ref {
			was = old[at]
			at++
		}
		if was != nil && was.policy == p && !r.rebuilt {
			r.traffic = append(r.traffic, was)
			continue
		}
		if was != nil {
			r.removeTrafficBinding(was)
		}
		b := r.env.newTrafficBinding(p, was)
		r.traffic = append(r.traffic, b)
		r.addTrafficBinding(b)
	}
	for ; at < len(old); at++ {
		r.removeTrafficBinding(old[at])
	}
}

func (r *reconciler) addTrafficBinding(b *trafficBinding) {
	r.dirtyPolicies[b.ref] = true
	for _, i := range b.selected {
		s := r.states[i]
		if r.rebuilt {
			s.traffic = append(s.traffic, b) // sorted at the end of bindPolicies
			continue
		}
		r.dirty[i] = true
		at, _ := slices.BinarySearchFunc(s.traffic, b, byAge)
		s.traffic = slices.Insert(s.traffic, at, b)
	}
}

func (r *reconciler) removeTrafficBinding(b *trafficBinding) {
	if r.rebuilt {
		return // the states are new
	}
	for _, i := range b.selected {
		r.dirty[i] = true
		r.states[i].traffic = slices.DeleteFunc(r.states[i].traffic, func(x *trafficBinding) bool { return x == b })
	}
}

func (r *reconciler) bindAccessPolicies() {
	if !r.rebuilt && snapshot.SameSlice(r.last.access, r.next.access) {
		return
	}
	old := make(map[snapshot.Ref]*accessBinding, len(r.access))
	for _, b := range r.access {
		old[b.ref] = b
	}
	r.access = make([]*accessBinding, 0, len(r.next.access))
	for _, p := range r.next.access {
		ref := snapshot.RefOf(snapshot.AccessPolicy, p)
		was := old[ref]
		delete(old, ref)
		if was != nil && was.policy == p && !r.rebuilt {
			r.access = append(r.access, was)
			continue
		}
		b := r.env.newAccessBinding(p, was)
		r.access = append(r.access, b)
		r.dirtyPolicies[ref] = true
		r.replaceAccessBinding(was, b)
	}
	for _, gone := range old {
		r.replaceAccessBinding(gone, nil)
	}
}

// replaceAccessBinding replaces a binding in the states that it selects. Either may
// be nil.
func (r *reconciler) replaceAccessBinding(was, now *accessBinding) {
	if was != nil && !r.rebuilt {
		for _, i := range was.selected {
			r.dirty[i] = true
			r.states[i].access = slices.DeleteFunc(r.states[i].access, func(x *accessBinding) bool { return x == was })
			r.markAccessPolicies(i)
		}
		r.markAccountGroups(was.selected)
	}
	if now == nil {
		return
	}
	for _, i := range now.selected {
		s := r.states[i]
		if r.rebuilt {
			s.access = append(s.access, now) // policies are in order
			continue
		}
		r.dirty[i] = true
		at, _ := slices.BinarySearchFunc(s.access, now, func(a, b *accessBinding) int { return a.ref.Compare(b.ref) })
		s.access = slices.Insert(s.access, at, now)
		r.markAccessPolicies(i)
	}
	if !r.rebuilt {
		r.markAccountGroups(now.selected)
	}
}

// markAccountGroups marks the Destinations that share an account with the selected
// ones: they are evaluated together.
func (r *reconciler) markAccountGroups(selected []int) {
	marked := map[*accountGroup]bool{}
	for _, i := range selected {
		group := r.env.accounts.groups[i]
		if group == nil || marked[group] {
			continue
		}
		marked[group] = true
		for _, member := range group.members {
			r.dirty[member] = true
			r.markAccessPolicies(member)
		}
	}
}

// markAccessPolicies marks the policies on a Destination, whose order there may have
// changed.
func (r *reconciler) markAccessPolicies(i int) {
	for _, b := range r.states[i].access {
		r.dirtyPolicies[b.ref] = true
	}
}
