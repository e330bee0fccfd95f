package traffic

import "time"

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
		p.each(func(id uint64, measures []byte) {
			requests := requestsOf(measures)
			if requests == 0 {
				return
			}
			if byID[id] == nil {
				key := r.edgeOf(id).key
				if out[key] == nil {
					out[key] = make([]uint64, minutes)
				}
				byID[id] = out[key]
			}
			byID[id][at] += requests
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
