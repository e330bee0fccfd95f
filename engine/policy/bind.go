package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bind finds what each policy selects, and puts it into the cells that it has a
// say in. Where the world is the same, only changed policies are looked at.
func (r *round) bind() {
	r.bindTraffic()
	r.bindAccess()
	if !r.fresh {
		return
	}
	for _, c := range r.cells {
		slices.SortFunc(c.traffic, byAge)
	}
}

func byAge(a, b *trafficBinding) int { return inventory.CompareAge(a.policy, b.policy) }

func (r *round) bindTraffic() {
	if !r.fresh && snapshot.SameSlice(r.basis.traffic, r.next.traffic) {
		return
	}
	old := r.traffic
	r.traffic = make([]*trafficBinding, 0, len(r.next.traffic))
	at := 0
	for _, p := range r.next.traffic {
		ref := snapshot.RefOf(snapshot.TrafficPolicy, p)
		for ; at < len(old) && old[at].ref.Compare(ref) < 0; at++ {
			r.dropTraffic(old[at])
		}
		var was *trafficBinding
		if at < len(old) && old[at].ref == ref {
			was = old[at]
			at++
		}
		if was != nil && was.policy == p && !r.fresh {
			r.traffic = append(r.traffic, was)
			continue
		}
		if was != nil {
			r.dropTraffic(was)
		}
		b := r.world.bindTraffic(p, was)
		r.traffic = append(r.traffic, b)
		r.addTraffic(b)
	}
	for ; at < len(old); at++ {
		r.dropTraffic(old[at])
	}
}

func (r *round) addTraffic(b *trafficBinding) {
	r.policies[b.ref] = true
	for _, i := range b.selected {
		c := r.cells[i]
		if r.fresh {
			c.traffic = append(c.traffic, b) // sorted when all are there
			continue
		}
		r.dirty[i] = true
		at, _ := slices.BinarySearchFunc(c.traffic, b, byAge)
		c.traffic = slices.Insert(c.traffic, at, b)
	}
}

func (r *round) dropTraffic(b *trafficBinding) {
	if r.fresh {
		return // the cells are new
	}
	for _, i := range b.selected {
		r.dirty[i] = true
		r.cells[i].traffic = slices.DeleteFunc(r.cells[i].traffic, func(x *trafficBinding) bool { return x == b })
	}
}

func (r *round) bindAccess() {
	if !r.fresh && snapshot.SameSlice(r.basis.access, r.next.access) {
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
		if was != nil && was.policy == p && !r.fresh {
			r.access = append(r.access, was)
			continue
		}
		b := r.world.bindAccess(p, was)
		r.access = append(r.access, b)
		r.policies[ref] = true
		r.swapAccess(was, b)
	}
	for _, gone := range old {
		r.swapAccess(gone, nil)
	}
}

// swapAccess puts a binding into the cells that it selects in the place of an
// earlier one.
func (r *round) swapAccess(was, now *accessBinding) {
	if was != nil && !r.fresh {
		for _, i := range was.selected {
			r.dirty[i] = true
			r.cells[i].access = slices.DeleteFunc(r.cells[i].access, func(x *accessBinding) bool { return x == was })
			r.markAccess(i)
		}
		r.markSharers(was.selected)
	}
	if now == nil {
		return
	}
	for _, i := range now.selected {
		c := r.cells[i]
		if r.fresh {
			c.access = append(c.access, now) // policies come in order
			continue
		}
		r.dirty[i] = true
		at, _ := slices.BinarySearchFunc(c.access, now, func(a, b *accessBinding) int { return a.ref.Compare(b.ref) })
		c.access = slices.Insert(c.access, at, now)
		r.markAccess(i)
	}
	if !r.fresh {
		r.markSharers(now.selected)
	}
}

// markSharers: what is granted to an account is judged on all Destinations that
// share it.
func (r *round) markSharers(selected []int) {
	marked := map[*accountGroup]bool{}
	for _, i := range selected {
		group := r.world.accounts.groups[i]
		if group == nil || marked[group] {
			continue
		}
		marked[group] = true
		for _, member := range group.members {
			r.dirty[member] = true
			r.markAccess(member)
		}
	}
}

// markAccess: the others' order on the Destination may have changed.
func (r *round) markAccess(i int) {
	for _, b := range r.cells[i].access {
		r.policies[b.ref] = true
	}
}
