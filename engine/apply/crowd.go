package apply

import "time"

// A change may alter the status of everything beside it: of 2,000 policies on one service,
// the first that goes moves all others up by one. While such changes follow one another
// (users delete many policies), their statuses would be written again and again, and the
// API server would have no time for the user. They wait until the changes pause.
const (
	// crowdSize is the number of statuses that change at once from which on they wait.
	crowdSize = 50
	// crowdPause is without such a change; crowdMost, the longest wait. The first of
	// several changes waits for crowdFirst only: mostly, it is the only one.
	crowdFirst = 500 * time.Millisecond
	crowdPause = 3 * time.Second
	crowdMost  = 15 * time.Second
)

// crowd makes the statuses of great changes wait. The lock of the management cluster guards it.
type crowd struct {
	// since is when the statuses began to wait; last, when the last change came; end, when they are written, zero if none wait.
	since, last, end time.Time
}

// crowded enters a change of a number of statuses in the management cluster.
func (c *cluster) crowded(statuses int) {
	if statuses < crowdSize {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	w, now := &c.crowd, time.Now()
	pause := crowdFirst
	if now.Sub(w.last) < crowdPause {
		pause = crowdPause
	}
	w.last = now
	if w.end.IsZero() {
		w.since = now
		c.queue.hold(1)
	}
	w.end = now.Add(pause)
	if most := w.since.Add(crowdMost); w.end.After(most) {
		w.end = most
	}
	c.timers.set(w, w.end)
}

// fire implements timer: the statuses are written, if no change came since.
func (w *crowd) fire(c *cluster, now time.Time) {
	switch {
	case w.end.IsZero():
	case w.end.After(now):
		c.timers.set(w, w.end)
	default:
		w.end = time.Time{}
		c.queue.hold(-1)
	}
}
