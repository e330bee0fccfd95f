package apply

import (
	"github.com/meshctl/meshctl/engine/snapshot"
)

// phases orders the work: objects in the order of the Kind table, so that what
// others refer to is written first; then statuses; then deletions, in reverse.
type phases struct {
	position map[snapshot.Kind]int
}

func newPhases(kinds []snapshot.Kind) phases {
	p := phases{position: map[snapshot.Kind]int{}}
	for i, k := range kinds {
		p.position[k] = i
	}
	return p
}

func (p phases) count() int                   { return 3 * len(p.position) }
func (p phases) write(k snapshot.Kind) int    { return p.position[k] }
func (p phases) status(k snapshot.Kind) int   { return len(p.position) + p.position[k] }
func (p phases) deletion(k snapshot.Kind) int { return 3*len(p.position) - 1 - p.position[k] }
func (p phases) of(i *item) int {
	switch {
	case i.object != nil && !i.statusOnly:
		return p.write(i.id.Kind)
	case i.status != nil:
		return p.status(i.id.Kind)
	default:
		return p.deletion(i.id.Kind)
	}
}

// queue returns items one phase after the other: none of a later phase while one of
// an earlier phase waits or is being processed. Retries do not count, or one rejected
// object would delay all others. It has no lock of its own.
type queue struct {
	phases
	waiting [][]*item
	// working counts the items being processed; barring, by phase, those of them
	// that delay later phases.
	barring []int
	queued  int
	working int
	// held counts the reasons to return no statuses.
	held int
}

func newQueue(kinds []snapshot.Kind) queue {
	p := newPhases(kinds)
	return queue{phases: p, waiting: make([][]*item, p.count()), barring: make([]int, p.count())}
}

func (q *queue) idle() bool { return q.queued == 0 && q.working == 0 }

// push queues an item that is neither queued nor being processed.
func (q *queue) push(i *item) {
	phase := q.of(i)
	i.queued = true
	q.waiting[phase] = append(q.waiting[phase], i)
	q.queued++
}

// pop returns the next item; nil if there is none, or none yet.
func (q *queue) pop() *item {
	for phase := range q.waiting {
		if q.held > 0 && phase == len(q.position) {
			return nil
		}
		for len(q.waiting[phase]) > 0 {
			i := q.take(phase)
			if now := q.of(i); now != phase {
				// What is wanted changed while it waited.
				q.push(i)
				if now < phase {
					return q.pop()
				}
				continue
			}
			i.working, i.statusOnly, i.phase = true, false, phase
			q.working++
			if i.refusal == nil {
				i.bars = true
				q.barring[phase]++
			}
			return i
		}
		if q.barring[phase] > 0 {
			return nil
		}
	}
	return nil
}

func (q *queue) take(phase int) *item {
	i := q.waiting[phase][0]
	q.waiting[phase][0] = nil
	q.waiting[phase] = q.waiting[phase][1:]
	if len(q.waiting[phase]) == 0 {
		q.waiting[phase] = nil
	}
	q.queued--
	i.queued = false
	return i
}

// done marks an item as processed; true if a later phase may start.
func (q *queue) done(i *item) bool {
	i.working = false
	q.working--
	if !i.bars {
		return false
	}
	i.bars = false
	q.barring[i.phase]--
	return q.barring[i.phase] == 0
}

// clear removes and returns all waiting items.
func (q *queue) clear() []*item {
	var cleared []*item
	for phase := range q.waiting {
		for len(q.waiting[phase]) > 0 {
			cleared = append(cleared, q.take(phase))
		}
	}
	return cleared
}
