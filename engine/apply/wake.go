package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// All that a cluster of the sink does later, it does by its one delaying queue. Who is woken decides then whether it is time.

// sleeper is something that acts at a time.
type sleeper interface {
	// ring is called at the time, with the lock of the cluster, or earlier if it was woken for something else.
	ring(c *cluster, now time.Time)
}

// alarms wake sleepers of one cluster.
type alarms struct {
	queue workqueue.TypedDelayingInterface[sleeper]
}

func newAlarms() alarms { return alarms{workqueue.NewTypedDelayingQueue[sleeper]()} }

// set wakes a sleeper at a time.
func (a alarms) set(s sleeper, at time.Time) { a.queue.AddAfter(s, time.Until(at)) }

// run wakes the sleepers of a cluster until the queue is shut down.
func (a alarms) run(c *cluster) {
	for {
		s, closed := a.queue.Get()
		if closed {
			return
		}
		c.mu.Lock()
		s.ring(c, time.Now())
		c.unlock()
		a.queue.Done(s)
	}
}

// ring implements sleeper.
func (i *item) ring(c *cluster, now time.Time) {
	switch {
	case i.again.IsZero() || c.items[i.id] != i:
	case i.again.After(now):
		c.alarms.set(i, i.again)
	default:
		i.again = time.Time{}
		c.enqueue(i, false)
		c.prune([]*item{i})
	}
}
