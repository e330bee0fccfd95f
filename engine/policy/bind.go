package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bindPolicies finds the Destinations that each policy selects, and attaches the
// policy to them. If the environment did not change, only changed policies are bound.
func (r *reconciler) bindPolicies() {
	r.bindTrafficPolicies()
	r.bindAccessPolicies()
	if !r.rebuilt {
		return
	}
	for _, a := range r.attached {
		slices.SortFunc(a.traffic, byAge)
	}
}

func byAge(a, b *trafficBinding) int {
	return cmp.Or(compareAuthority(a.ref, b.ref), inventory.CompareAge(a.policy, b.policy), strings.Compare(a.ref.Cluster, b.ref.Cluster))
}

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
		if was != nil && was.policy == p && !r.rebuilt && !r.next.ofTraffic.beyond[ref] {
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
	for _, i := range b.selected {
		a := r.edit(i)
		if r.rebuilt {
			a.traffic = append(a.traffic, b) // sorted at the end of bindPolicies
			continue
		}
		at, _ := slices.BinarySearchFunc(a.traffic, b, byAge)
		a.traffic = slices.Insert(a.traffic, at, b)
	}
}

func (r *reconciler) removeTrafficBinding(b *trafficBinding) {
	if r.rebuilt {
		return // nothing is attached yet
	}
	for _, i := range b.selected {
		a := r.edit(i)
		a.traffic = slices.DeleteFunc(a.traffic, func(x *trafficBinding) bool { return x == b })
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
		if was != nil && was.policy == p && !r.rebuilt && !r.next.ofAccess.beyond[ref] {
			r.access = append(r.access, was)
			continue
		}
		b := r.env.newAccessBinding(p, was)
		r.access = append(r.access, b)
		r.replaceAccessBinding(was, b)
	}
	for _, gone := range old {
		r.replaceAccessBinding(gone, nil)
	}
}

// replaceAccessBinding replaces a binding on the Destinations that it selects. Either
// may be nil.
func (r *reconciler) replaceAccessBinding(was, now *accessBinding) {
	if was != nil && !r.rebuilt {
		for _, i := range was.selected {
			a := r.edit(i)
			a.access = slices.DeleteFunc(a.access, func(x *accessBinding) bool { return x == was })
		}
	}
	if now == nil {
		return
	}
	for _, i := range now.selected {
		a := r.edit(i)
		if r.rebuilt {
			a.access = append(a.access, now) // policies are in order
			continue
		}
		at, _ := slices.BinarySearchFunc(a.access, now, func(a, b *accessBinding) int { return a.ref.Compare(b.ref) })
		a.access = slices.Insert(a.access, at, now)
	}
}

// editAccountGroups has all Destinations planned that share an account with one whose
// AccessPolicies changed: they are evaluated together.
func (r *reconciler) editAccountGroups() {
	for i, group := range r.env.accounts.groups {
		if i == group[0] && slices.ContainsFunc(group, r.accessChanged) {
			for _, member := range group {
				r.edit(member)
			}
		}
	}
}

// accessChanged reports whether the AccessPolicies on a Destination are not those that
// its plan was made from.
func (r *reconciler) accessChanged(i int) bool {
	was, now := r.planned[i], r.attached[i]
	return was != now && (was == nil || !slices.Equal(was.access, now.access))
}
