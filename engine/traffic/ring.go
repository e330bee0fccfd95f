package traffic

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

const (
	// Kept is how long numbers are kept.
	Kept = 15 * time.Minute
	// Point is the time that one point of them is for.
	Point = 15 * time.Second
	// MaxEdges bounds the edges of all clusters.
	MaxEdges = 20_000
)

// Ring has the numbers of the last 15 minutes, by edge and point, and their sums. Times that it is given do not go back. The zero Ring is
// not ready: use NewRing.
type Ring struct {
	since time.Time
	max   int
	// points are ascending by time, and have no gaps.
	points []point
	// ids are the edges by their key, edges by their id. Ids are used again.
	ids   map[Key]uint32
	edges []edge
	free  []uint32
	// folded is how many times an edge became part of another one.
	folded uint64
	// scratch is used again by each Add.
	scratch []byte
}

type edge struct {
	key Key
	// total are the numbers since the edge was first seen, and kept those of all points.
	total, kept Values
	// last is the number of the last point with something of it. Used: the id is in use.
	last int64
	used bool
	// into is the id whose edge has this one's numbers, once it is folded.
	into   uint32
	folded bool
}

// point is what came in the time of one: an id, a size in bytes, and in these the measures with their numbers, all as varints; then the next
// id. Measures ascend.
type point struct {
	number int64
	data   []byte
}

// NewRing begins at a time, and has at most so many edges.
func NewRing(since time.Time, edges int) *Ring {
	return &Ring{since: since, max: edges, ids: map[Key]uint32{}}
}

// Since is when the ring began.
func (r *Ring) Since() time.Time { return r.since }

// Folded is how many times an edge became part of one with several callers, as there were too many.
func (r *Ring) Folded() uint64 { return r.folded }

// Edges is how many there are.
func (r *Ring) Edges() int { return len(r.ids) }

func numberOf(at time.Time) int64 { return at.Unix() / int64(Point/time.Second) }

// Add adds what came to an edge at a time.
func (r *Ring) Add(at time.Time, key Key, came *Values) {
	r.turn(at)
	last := &r.points[len(r.points)-1]
	id := r.id(key)
	e := &r.edges[id]
	e.last = last.number
	e.total.Add(came)
	e.kept.Add(came)
	r.scratch = r.scratch[:0]
	for i, value := range came {
		if value != 0 {
			r.scratch = binary.AppendUvarint(append(r.scratch, byte(i)), value)
		}
	}
	last.data = binary.AppendUvarint(last.data, uint64(id))
	last.data = binary.AppendUvarint(last.data, uint64(len(r.scratch)))
	last.data = append(last.data, r.scratch...)
	if len(r.ids) > r.max {
		r.fold()
	}
}

// turn makes a time the last point, and forgets what is older than is kept.
func (r *Ring) turn(at time.Time) {
	now := numberOf(at)
	if len(r.points) > 0 && r.points[len(r.points)-1].number >= now {
		return
	}
	size := 0
	if n := len(r.points); n > 0 {
		size = len(r.points[n-1].data) // about as much comes in each
	}
	r.points = append(r.points, point{number: now, data: make([]byte, 0, size+size/16)})
	oldest := now - int64(Kept/Point)
	drop := 0
	for drop < len(r.points) && r.points[drop].number <= oldest {
		drop++
	}
	if drop == 0 {
		return
	}
	for i := range drop {
		r.points[i].each(func(id uint64, measures []byte) { subtract(&r.edgeOf(id).kept, measures) })
	}
	r.points = slices.Delete(r.points, 0, drop)
	for id := range r.edges {
		if e := &r.edges[id]; e.used && e.last <= oldest {
			if !e.folded {
				delete(r.ids, e.key)
			}
			*e = edge{}
			r.free = append(r.free, uint32(id))
		}
	}
}

// id is that of an edge, which may be new.
func (r *Ring) id(key Key) uint32 {
	if id, known := r.ids[key]; known {
		return id
	}
	id := uint32(len(r.edges))
	if n := len(r.free); n > 0 {
		id, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.edges = append(r.edges, edge{})
	}
	r.edges[id] = edge{key: key, used: true}
	r.ids[key] = id
	return id
}

// others is the edge that has the callers of another one for whom there is no room.
func others(key Key) Key { return Key{To: key.To, Door: key.Door} }

// fold makes the edges with the fewest requests parts of the edges of their destination's other callers, until there are a tenth fewer than
// may be: to do it for each edge would cost more.
func (r *Ring) fold() {
	var small []uint32
	for key, id := range r.ids {
		if key != others(key) {
			small = append(small, id)
		}
	}
	slices.SortFunc(small, func(a, b uint32) int {
		x, y := &r.edges[a], &r.edges[b]
		return cmp.Or(cmp.Compare(x.total.Requests(), y.total.Requests()), x.key.From.Compare(y.key.From), x.key.To.Compare(y.key.To),
			cmp.Compare(x.key.Port, y.key.Port), cmp.Compare(x.key.Subset, y.key.Subset), cmp.Compare(x.key.Door, y.key.Door))
	})
	for _, id := range small {
		if len(r.ids) <= r.max-r.max/10 {
			return
		}
		into := r.id(others(r.edges[id].key)) // may move the edges
		from := &r.edges[id]
		delete(r.ids, from.key)
		to := &r.edges[into]
		to.total.Add(&from.total)
		to.kept.Add(&from.kept)
		from.into, from.folded, from.kept = into, true, Values{}
		to.last = max(to.last, from.last)
		r.folded++
	}
}

// Window adds up the points of the last time, which is at most Kept. From is when the first of them begins, or the ring did. It reads the points
// in the window, or those beside it where they are fewer: all of them are summed up already.
func (r *Ring) Window(now time.Time, length time.Duration) (sums map[Key]*Values, from time.Time) {
	first, last := numberOf(now.Add(-min(length, Kept)))+1, numberOf(now)
	var inside, outside []*point
	for i := range r.points {
		if p := &r.points[i]; p.number >= first && p.number <= last {
			inside = append(inside, p)
		} else {
			outside = append(outside, p)
		}
	}
	read, change := inside, add
	byID := make([]Values, len(r.edges))
	if len(outside) < len(inside) {
		read, change = outside, subtract
		for id := range r.edges {
			byID[id] = r.edges[id].kept
		}
	}
	for _, p := range read {
		p.each(func(id uint64, measures []byte) { change(&byID[r.ended(id)], measures) })
	}
	sums = make(map[Key]*Values, len(r.ids))
	for id := range byID {
		if v := &byID[id]; *v != (Values{}) {
			sums[r.edges[id].key] = v
		}
	}
	from = time.Unix(first*int64(Point/time.Second), 0)
	if from.Before(r.since) {
		from = r.since
	}
	return sums, from
}

// each calls a function with the measures of each id of a point.
func (p *point) each(do func(id uint64, measures []byte)) {
	for data := p.data; len(data) > 0; {
		id, n := binary.Uvarint(data)
		size, m := binary.Uvarint(data[n:])
		end := n + m + int(size)
		do(id, data[n+m:end])
		data = data[end:]
	}
}

func add(v *Values, measures []byte) {
	for len(measures) > 0 {
		value, n := binary.Uvarint(measures[1:])
		v[measures[0]] += value
		measures = measures[n+1:]
	}
}

func subtract(v *Values, measures []byte) {
	for len(measures) > 0 {
		value, n := binary.Uvarint(measures[1:])
		v[measures[0]] -= value
		measures = measures[n+1:]
	}
}

// ended is the id of the edge that has the numbers of an id.
func (r *Ring) ended(id uint64) uint64 {
	for r.edges[id].folded {
		id = uint64(r.edges[id].into)
	}
	return id
}

func (r *Ring) edgeOf(id uint64) *edge { return &r.edges[r.ended(id)] }

// Totals calls a function with each edge and its sums since it was first seen. An edge of which nothing came for 15 minutes is forgotten.
func (r *Ring) Totals(each func(Key, *Values)) {
	for key, id := range r.ids {
		each(key, &r.edges[id].total)
	}
}
