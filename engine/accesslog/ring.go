package accesslog

// Bounds of a Ring.
const (
	// PerKey is how many entries are kept for each key, and MaxBytes how much memory all of them take at most.
	PerKey   = 200
	MaxBytes = 16 << 20
)

// Kept is an entry in a Ring.
type Kept struct {
	// Sequence counts the entries of a Ring, from 1 on.
	Sequence uint64
	Entry    *Entry
	size     int
}

// Ring keeps the last entries of each key, such as a workload: one that logs much takes no place from others until all places are taken, and
// then the one that takes most loses its oldest entry. The zero value is not usable; see NewRing.
type Ring struct {
	perKey, maxBytes int
	byKey            map[string][]Kept
	bytes            map[string]int
	total            int
	next             uint64
	dropped          uint64
}

// NewRing is an empty Ring.
func NewRing(perKey, maxBytes int) *Ring {
	return &Ring{perKey: perKey, maxBytes: maxBytes, byKey: map[string][]Kept{}, bytes: map[string]int{}, next: 1}
}

// Add adds an entry of a key, in the place of older ones if there is none.
func (r *Ring) Add(key string, e *Entry) {
	k := Kept{Sequence: r.next, Entry: e, size: e.size()}
	r.next++
	if len(r.byKey[key]) >= r.perKey {
		r.shift(key)
		r.dropped++
	}
	r.byKey[key] = append(r.byKey[key], k)
	r.bytes[key] += k.size
	r.total += k.size
	for r.total > r.maxBytes {
		most := key
		for other, n := range r.bytes {
			if n > r.bytes[most] || n == r.bytes[most] && other < most {
				most = other
			}
		}
		r.shift(most)
		r.dropped++
	}
}

// shift takes the oldest entry of a key out.
func (r *Ring) shift(key string) Kept {
	list := r.byKey[key]
	k := list[0]
	r.total -= k.size
	if r.bytes[key] -= k.size; len(list) == 1 {
		delete(r.byKey, key)
		delete(r.bytes, key)
		return k
	}
	list[0] = Kept{} // so that the entry is freed
	r.byKey[key] = list[1:]
	return k
}

// Take takes out entries of the key that has the oldest one, at most so many, the oldest first.
func (r *Ring) Take(most int) (key string, out []*Entry) {
	first := uint64(0)
	for other, list := range r.byKey {
		if first == 0 || list[0].Sequence < first {
			key, first = other, list[0].Sequence
		}
	}
	for first > 0 && len(out) < most && len(r.byKey[key]) > 0 {
		out = append(out, r.shift(key).Entry)
	}
	return key, out
}

// Forget drops the entries of keys that a function does not keep.
func (r *Ring) Forget(keep func(key string) bool) {
	for key := range r.byKey {
		if keep(key) {
			continue
		}
		r.total -= r.bytes[key]
		delete(r.byKey, key)
		delete(r.bytes, key)
	}
}

// Dropped is how many entries had to make place.
func (r *Ring) Dropped() uint64 { return r.dropped }

// Last is the sequence number of the last entry; 0 if there was none.
func (r *Ring) Last() uint64 { return r.next - 1 }
