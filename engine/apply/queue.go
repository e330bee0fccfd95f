package apply

import (
	"github.com/meshctl/meshctl/engine/snapshot"
)

// phases puts work in order: objects in the order of the Kind table, so that
// what others refer to stands first; then statuses; then deletions, in reverse.
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
		return p.write(i.id.kind)
	case i.status != nil:
		return p.status(i.id.kind)
	default:
		return p.deletion(i.id.kind)
	}
}

// queue hands out items, a phase after the other: none of a later phase while
// one of an earlier phase waits or is being worked on. Retries are not waited
// for, or one refused object would hold up all others. It has no lock of its own.
type queue struct {
	phases
	waiting [][]*item
	// working counts what is handed out and not done; barring, by phase, what
	// of it holds up later phases.
	barring []int
	queued  int
	working int
	// held counts the reasons to hand out nothing but objects.
	held int
}

func newQueue(kinds []snapshot.Kind) queue {
	p := newPhases(kinds)
	return queue{phases: p, waiting: make([][]*item, p.count()), barring: make([]int, p.count())}
}

func (q *queue) idle() bool { return q.queued == 0 && q.working == 0 }

// push queues an item that is neither queued nor being worked on.
func (q *queue) push(i *item) {
	phase := q.of(i)
	i.queued = true
	q.waiting[phase] = append(q.waiting[phase], i)
	q.queued++
}

// pop hands out the next item; nil if there is none, or none yet.
func (q *queue) pop() *item {
	for phase := range q.waiting {
		if q.held > 0 && phase == len(q.position) {
			return nil
		}
		for len(q.waiting[phase]) > 0 {
			i := q.take(phase)
			if now := q.of(i); now != phase {
				// What is wanted of it changed while it waited.
				q.push(i)
				if now < phase {
					return q.pop()
				}
				continue
			}
			i.working, i.statusOnly, i.phase = true, false, phase
			q.working++
			if i.tries == 0 {
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

// done takes an item back; true if later phases may have become free.
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

// clear takes back all that waits.
func (q *queue) clear() []*item {
	var cleared []*item
	for phase := range q.waiting {
		for len(q.waiting[phase]) > 0 {
			cleared = append(cleared, q.take(phase))
		}
	}
	return cleared
}
