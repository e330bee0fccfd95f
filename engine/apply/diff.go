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
// that are the same pointer are the same.
func diff(before, after *snapshot.Output) deltas {
	if before == nil {
		before = &snapshot.Output{}
	}
	if after == nil {
		after = &snapshot.Output{}
	}
	d := deltas{}
	snapshot.Diff(before.Parts, after.Parts,
		func(a, b *snapshot.Part) int { return strings.Compare(a.Key, b.Key) },
		func(a, b *snapshot.Part) { d.parts(objectsOf(a), objectsOf(b)) })
	snapshot.Diff(before.Statuses, after.Statuses,
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
	snapshot.Diff(snapshot.ListOf(before), snapshot.ListOf(after),
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
