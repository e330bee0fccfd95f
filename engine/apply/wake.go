package apply

import "time"

// All that a cluster of the sink does later, it does by its one delaying queue. Who is woken decides then whether it is time.

// sleeper is something that acts at a time.
type sleeper interface {
	// ring is called at the time, with the lock of the cluster, or earlier if it was woken for something else.
	ring(c *cluster, now time.Time)
}

// wakeAt wakes a sleeper.
func (c *cluster) wakeAt(s sleeper, at time.Time) { c.alarms.AddAfter(s, time.Until(at)) }

// ring wakes sleepers until the cluster is closed.
func (c *cluster) ring() {
	for {
		s, closed := c.alarms.Get()
		if closed {
			return
		}
		c.mu.Lock()
		s.ring(c, time.Now())
		c.unlock()
		c.alarms.Done(s)
	}
}

// ring implements sleeper.
func (i *item) ring(c *cluster, now time.Time) {
	switch {
	case i.again.IsZero() || c.items[i.id] != i:
	case i.again.After(now):
		c.wakeAt(i, i.again)
	default:
		i.again = time.Time{}
		c.enqueue(i, false)
		c.prune([]*item{i})
	}
}
