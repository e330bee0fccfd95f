package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/kube"
)

// This file decides when a write that failed is tried again. Each item has one timer,
// however often it fails and its content changes.

// Retries of what an API server refused: 0.5 s, doubled each time, at most half a minute;
// or, if many objects of a cluster are refused, so that all together are not tried more
// often than once in retrySpacing.
const (
	retryFirst   = 500 * time.Millisecond
	retryMost    = 30 * time.Second
	retrySpacing = 20 * time.Millisecond
)

// refusal says how often a write of an item failed in a row, and when it is tried again.
// It outlives changes of the content, or an object that changes all the time would be
// tried all the time.
type refusal struct {
	// verb is the write that failed; others do not wait.
	verb  verb
	tries uint8
	due   time.Time
	// hurried is when a change was last a reason to try before the time.
	hurried time.Time
	// tried: what is wanted now is what failed. parked: it waits in an outage.
	tried, parked bool
}

// alarm queues an item at a time; the zero time is never.
// awaited: Settled waits for it.
type alarm struct {
	timer   *time.Timer
	at      time.Time
	awaited bool
	// fresh: what it puts off follows from an Output, and is no repair.
	fresh bool
}

func (i *item) parked() bool { return i.refusal != nil && i.refusal.parked }

func (i *item) sleeping() bool { return i.alarm != nil && !i.alarm.at.IsZero() }

// failing returns what is known of the failures of an item, to be changed.
func (i *item) failing() *refusal {
	if i.refusal == nil {
		i.refusal = &refusal{}
	}
	return i.refusal
}

// retryNow brings the next try forward, because what is wanted or what exists has changed: at
// most once in retryMost, so that a user's edit after a quiet time is written at once.
func (r *refusal) retryNow(now time.Time) {
	if r == nil {
		return
	}
	r.tried = false
	if r.tries > 0 && now.Sub(r.hurried) >= retryMost {
		r.hurried, r.due = now, now
	}
}

// wait is how long a write has to wait.
func (r *refusal) wait(v verb, now time.Time) time.Duration {
	if r == nil || r.tries == 0 || r.verb != v {
		return 0
	}
	return r.due.Sub(now)
}

// retry tries an item again after a failure.
func (c *cluster) retry(i *item, v verb) {
	r := i.failing()
	if r.verb != v {
		r.tries = 0
	}
	if r.tries < 255 {
		r.tries++
	}
	wait := max(kube.Backoff(retryFirst, retryMost, int(r.tries)), time.Duration(len(c.failures))*retrySpacing)
	wait = kube.Jitter(wait)
	r.verb, r.tried, r.due = v, true, time.Now().Add(wait)
	c.later(i, wait)
}

// barred reports whether a write has to wait because it was refused, and queues it for
// later.
func (c *cluster) barred(i *item, v verb) bool {
	if c.park(i, v) {
		return true
	}
	wait := i.refusal.wait(v, time.Now())
	if wait <= 0 {
		return false
	}
	c.later(i, wait)
	return true
}

// later queues an item again after a pause. Of several pauses, the first that ends counts;
// what is queued too early is put off again.
func (c *cluster) later(i *item, wait time.Duration) {
	at := time.Now().Add(wait)
	if i.alarm == nil {
		i.alarm = &alarm{}
	}
	i.alarm.fresh = i.alarm.fresh || i.counts
	switch {
	case i.alarm.timer == nil:
		i.alarm.timer = time.AfterFunc(wait, func() { c.ring(i) })
	case i.sleeping() && !at.Before(i.alarm.at):
		return
	default:
		i.alarm.timer.Reset(wait)
	}
	i.alarm.at = at
}

// ring queues an item whose pause has ended.
func (c *cluster) ring(i *item) {
	c.mu.Lock()
	defer c.unlock()
	fresh := i.alarm.fresh
	i.alarm.at, i.alarm.fresh = time.Time{}, false
	if i.alarm.awaited {
		i.alarm.awaited = false
		c.awaiting--
	}
	if c.items[i.id] != i {
		return
	}
	if r := i.refusal; i.object == nil && i.status == nil && r != nil && time.Since(r.due) < retryMost {
		c.later(i, retryMost) // it may be wanted again
	}
	c.enqueue(i, fresh)
	c.prune([]*item{i})
}

// soon is later, and Settled waits for it.
func (c *cluster) soon(i *item, wait time.Duration) {
	c.later(i, wait)
	if !i.alarm.awaited {
		i.alarm.awaited = true
		c.awaiting++
	}
}

// race checks an item again after a conflict.
func (c *cluster) race(i *item) {
	if i.races < 255 {
		i.races++
	}
	c.soon(i, kube.Backoff(raceFirst, raceMost, int(i.races)))
}
