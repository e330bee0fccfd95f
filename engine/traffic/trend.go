package traffic

import (
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// trends are the requests of each whole minute of the last time, the oldest first, by edge.
func (r *Ring) trends(now time.Time, length time.Duration) map[Key][]uint64 {
	const perMinute = int64(time.Minute / Point)
	out := map[Key][]uint64{}
	minutes := int64(min(length, Kept) / time.Minute)
	first := numberOf(now) - minutes*perMinute + 1
	byID := make([][]uint64, len(r.edges))
	for i := range r.points {
		p := &r.points[i]
		if p.number < first || p.number > numberOf(now) {
			continue
		}
		at := (p.number - first) / perMinute
		p.each(func(id uint64, measure byte, value uint64) {
			if !snapshot.Measure(measure).Requests() {
				return
			}
			if byID[id] == nil {
				key := r.keyOf(id)
				if out[key] == nil {
					out[key] = make([]uint64, minutes)
				}
				byID[id] = out[key]
			}
			byID[id][at] += value
		})
	}
	return out
}

// sum adds up two trends of the same length; the first one may be nil, and is changed otherwise.
func sum(a, b []uint64) []uint64 {
	if a == nil {
		return append([]uint64(nil), b...)
	}
	for i, n := range b {
		a[i] += n
	}
	return a
}
