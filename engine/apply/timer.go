package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// All that a cluster of the sink does later, it does by its one delaying queue. A timer that fires decides then whether it is time.

// timer is something that acts at a time.
type timer interface {
	// fire is called at the time, with the lock of the cluster, or earlier if it was set for something else.
	fire(c *cluster, now time.Time)
}

// timers fire in one cluster.
type timers struct {
	queue workqueue.TypedDelayingInterface[timer]
}

func newTimers() timers { return timers{workqueue.NewTypedDelayingQueue[timer]()} }

// set makes a timer fire at a time.
func (a timers) set(s timer, at time.Time) { a.queue.AddAfter(s, time.Until(at)) }

// run fires the timers of a cluster until the queue is shut down.
func (a timers) run(c *cluster) {
	for {
		s, closed := a.queue.Get()
		if closed {
			return
		}
		c.mu.Lock()
		s.fire(c, time.Now())
		c.unlock()
		a.queue.Done(s)
	}
}

// fire implements timer.
func (i *item) fire(c *cluster, now time.Time) {
	switch {
	case i.again.IsZero() || c.items[i.id] != i:
	case i.again.After(now):
		c.timers.set(i, i.again)
	default:
		i.again = time.Time{}
		c.enqueue(i, false)
		c.prune([]*item{i})
	}
}
