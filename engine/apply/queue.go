package apply

import (
	"sync"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// ranks orders the work: objects in the order of the Kind table, so that what
// others refer to is written first; then statuses; then deletions, in reverse.
type ranks struct {
	position map[snapshot.Kind]int
}

func newRanks(kinds []snapshot.Kind) ranks {
	p := ranks{position: map[snapshot.Kind]int{}}
	for i, k := range kinds {
		p.position[k] = i
	}
	return p
}

func (p ranks) count() int                   { return 3 * len(p.position) }
func (p ranks) write(k snapshot.Kind) int    { return p.position[k] }
func (p ranks) status(k snapshot.Kind) int   { return len(p.position) + p.position[k] }
func (p ranks) deletion(k snapshot.Kind) int { return 3*len(p.position) - 1 - p.position[k] }
func (p ranks) of(i *item) int {
	switch {
	case i.object != nil && !i.place.statusOnly:
		return p.write(i.id.Kind)
	case i.status != nil:
		return p.status(i.id.Kind)
	default:
		return p.deletion(i.id.Kind)
	}
}

// queuePlace is where in the queue an item is.
type queuePlace struct {
	// queued: it waits. working: it is being processed. again: it is to be queued when that is done.
	queued, working, again bool
	// statusOnly: it waits because of its status; the object is as it was wanted before.
	statusOnly bool
	// barring is the rank that it delays while it is being processed; -1 if it delays none.
	barring int16
}

// queue returns items one rank after the other: none of a later rank while one of
// an earlier rank waits or is being processed. Retries do not count, or one rejected
// object would delay all others. The cluster's lock guards it.
type queue struct {
	ranks
	// changed is signalled when next may return an item.
	changed *sync.Cond
	waiting [][]*item
	// working counts the items being processed; barring, by rank, those of them
	// that delay later ranks.
	barring []int
	queued  int
	working int
	// held counts the reasons to return no statuses.
	held int
}

func newQueue(kinds []snapshot.Kind, lock sync.Locker) queue {
	p := newRanks(kinds)
	return queue{ranks: p, changed: sync.NewCond(lock), waiting: make([][]*item, p.count()), barring: make([]int, p.count())}
}

func (q *queue) idle() bool { return q.queued == 0 && q.working == 0 }

// push queues an item, now or when it is done; true if it waits now.
func (q *queue) push(i *item) bool {
	switch {
	case i.place.queued:
		return false
	case i.place.working:
		i.place.again = true
		return false
	}
	rank := q.of(i)
	i.place.queued = true
	q.waiting[rank] = append(q.waiting[rank], i)
	q.queued++
	q.changed.Signal()
	return true
}

// next waits for the next item; nil if none is to be returned any more, of which the caller tells by changed.
func (q *queue) next(closed func() bool) *item {
	for !closed() {
		if i := q.pop(); i != nil {
			return i
		}
		q.changed.Wait()
	}
	return nil
}

// hold adds a reason to return no statuses (1), or takes one away (-1).
func (q *queue) hold(by int) {
	q.held += by
	q.changed.Broadcast()
}

// pop returns the next item; nil if there is none, or none yet.
func (q *queue) pop() *item {
	for rank := range q.waiting {
		if q.held > 0 && rank == len(q.position) {
			return nil
		}
		for len(q.waiting[rank]) > 0 {
			i := q.take(rank)
			if now := q.of(i); now != rank {
				// What is wanted changed while it waited.
				q.push(i)
				if now < rank {
					return q.pop()
				}
				continue
			}
			i.place.working, i.place.statusOnly, i.place.barring = true, false, -1
			q.working++
			if i.history.refusal == nil {
				i.place.barring = int16(rank)
				q.barring[rank]++
			}
			return i
		}
		if q.barring[rank] > 0 {
			return nil
		}
	}
	return nil
}

func (q *queue) take(rank int) *item {
	i := q.waiting[rank][0]
	q.waiting[rank][0] = nil
	q.waiting[rank] = q.waiting[rank][1:]
	if len(q.waiting[rank]) == 0 {
		q.waiting[rank] = nil
	}
	q.queued--
	i.place.queued = false
	return i
}

// done marks an item as processed. It reports whether it is to be queued again.
func (q *queue) done(i *item) (again bool) {
	again, i.place.again, i.place.working = i.place.again, false, false
	q.working--
	if i.place.barring >= 0 {
		q.barring[i.place.barring]--
		if q.barring[i.place.barring] == 0 {
			q.changed.Broadcast() // a later rank may start
		}
	}
	return again
}

// clear removes and returns all waiting items.
func (q *queue) clear() []*item {
	var cleared []*item
	for rank := range q.waiting {
		for len(q.waiting[rank]) > 0 {
			cleared = append(cleared, q.take(rank))
		}
	}
	return cleared
}
