package apply

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// delta is what changes for one cluster from one Output to the next. An object
// that moved from one part to another is in both lists; drops come first.
type delta struct {
	drop, put             []*snapshot.Object
	dropStatus, putStatus []*snapshot.Status
}

// deltas are the deltas by cluster; clusters without changes are absent.
type deltas map[string]*delta

func (d deltas) of(cluster string) *delta {
	if d[cluster] == nil {
		d[cluster] = &delta{}
	}
	return d[cluster]
}

// diff compares two Outputs; either may be nil. Parts, contents and statuses
// that are the same pointer are the same; nothing is looked at twice.
func diff(before, after *snapshot.Output) deltas {
	if before == nil {
		before = &snapshot.Output{}
	}
	if after == nil {
		after = &snapshot.Output{}
	}
	d := deltas{}
	merge(before.Parts, after.Parts,
		func(a, b *snapshot.Part) int { return strings.Compare(a.Key, b.Key) },
		func(a, b *snapshot.Part) { d.parts(objectsOf(a), objectsOf(b)) })
	merge(before.Statuses, after.Statuses,
		func(a, b *snapshot.Status) int { return a.Ref.Compare(b.Ref) },
		func(a, b *snapshot.Status) {
			if b != nil {
				to := d.of(b.Ref.Cluster)
				to.putStatus = append(to.putStatus, b)
			} else {
				from := d.of(a.Ref.Cluster)
				from.dropStatus = append(from.dropStatus, a)
			}
		})
	return d
}

func (d deltas) parts(before, after []*snapshot.Object) {
	merge(before, after,
		func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) },
		func(a, b *snapshot.Object) {
			if a != nil && b != nil && a.Content == b.Content {
				return
			}
			if a != nil {
				from := d.of(a.Ref.Cluster)
				from.drop = append(from.drop, a)
			}
			if b != nil {
				to := d.of(b.Ref.Cluster)
				to.put = append(to.put, b)
			}
		})
}

func objectsOf(p *snapshot.Part) []*snapshot.Object {
	if p == nil {
		return nil
	}
	return p.Objects
}

// merge walks two sorted lists and calls changed for each pair that is not the
// same pointer; the side that lacks an element is nil. Equal pointers are
// passed over without being looked into.
func merge[T any](before, after []*T, compare func(a, b *T) int, changed func(a, b *T)) {
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		a, b := before[i], after[j]
		if a == b {
			i, j = i+1, j+1
			continue
		}
		switch c := compare(a, b); {
		case c < 0:
			changed(a, nil)
			i++
		case c > 0:
			changed(nil, b)
			j++
		default:
			changed(a, b)
			i, j = i+1, j+1
		}
	}
	for ; i < len(before); i++ {
		changed(before[i], nil)
	}
	for ; j < len(after); j++ {
		changed(nil, after[j])
	}
}
