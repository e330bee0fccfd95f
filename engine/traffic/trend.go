package traffic

import (
	"encoding/binary"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// trend are the requests of each minute of a window, the oldest first, and those of them that failed. Nil slices stand for none at all.
type trend struct{ requests, failed []uint64 }

// trendsAtOnce is for how many edges room is made at once.
const trendsAtOnce = 128

// trends are the requests of each whole minute of the last time, by edge.
func (r *Ring) trends(now time.Time, length time.Duration) map[Key]trend {
	const perMinute = int64(time.Minute / Point)
	out := make(map[Key]trend, len(r.ids))
	minutes := int64(min(length, Kept) / time.Minute)
	first := numberOf(now) - minutes*perMinute + 1
	byID, room := make([]trend, len(r.edges)), []uint64(nil)
	for i := range r.points {
		p := &r.points[i]
		if p.number < first || p.number > numberOf(now) {
			continue
		}
		at := (p.number - first) / perMinute
		p.each(func(id uint64, measures []byte) {
			requests, failed := requestsOf(measures)
			if requests == 0 {
				return
			}
			if byID[id].requests == nil {
				key := r.edgeOf(id).key
				if out[key].requests == nil {
					if len(room) == 0 {
						room = make([]uint64, trendsAtOnce*2*minutes)
					}
					out[key] = trend{room[:minutes:minutes], room[minutes : 2*minutes : 2*minutes]}
					room = room[2*minutes:]
				}
				byID[id] = out[key]
			}
			byID[id].requests[at] += requests
			byID[id].failed[at] += failed
		})
	}
	return out
}

// requestsOf are the requests of measures, which come first, and those of them that failed.
func requestsOf(measures []byte) (all, failed uint64) {
	for len(measures) > 0 && snapshot.Measure(measures[0]).Requests() {
		value, n := binary.Uvarint(measures[1:])
		all += value
		if snapshot.Measure(measures[0]).Failed() {
			failed += value
		}
		measures = measures[n+1:]
	}
	return all, failed
}

// plus adds up two trends of the same length. The first one may be that of none, and is changed otherwise.
func (t trend) plus(more trend) trend {
	return trend{sum(t.requests, more.requests), sum(t.failed, more.failed)}
}

// sum adds up two series of the same length; the first one may be nil, and is changed otherwise.
func sum(a, b []uint64) []uint64 {
	if a == nil {
		return append([]uint64(nil), b...)
	}
	for i, n := range b {
		a[i] += n
	}
	return a
}

// failures are those of the minutes; nil if there are none.
func (t trend) failures() []uint64 {
	for _, n := range t.failed {
		if n > 0 {
			return t.failed
		}
	}
	return nil
}
