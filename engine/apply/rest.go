package apply

import "time"

// An object whose write takes long (a VirtualService with 2,000 routes keeps an API server
// busy for a second) may change faster than it can be written: somebody deletes many
// policies. Then it is not written with each change, so that the API server has time for
// others. The first change is written at once. The next ones wait until the changes pause,
// or for restShare times what the writes took since the object last had a rest.
const (
	// slowWrite is more than a usual write takes, also on a busy machine.
	slowWrite = 100 * time.Millisecond
	restShare = 4
	restMost  = 15 * time.Second
	// effortGrowth bounds what counts as spent, as a multiple of the last write.
	effortGrowth = 4
	calmMost     = time.Second
)

// effort is what the writes of an item take whose last write was slow.
type effort struct {
	// spent is the time of the writes since the item last had a rest.
	spent time.Duration
	// changed is when what is wanted changed last, or the last write ended.
	changed time.Time
}

// spend returns the effort after a write; nil if that was not slow. No effort is nil.
func (e *effort) spend(took time.Duration, now time.Time) *effort {
	if took < slowWrite {
		return nil
	}
	spent := took
	if e != nil {
		spent = min(e.spent+took, took*effortGrowth)
	}
	return &effort{spent: spent, changed: now}
}

// rest is the longest wait after a write.
func (e *effort) rest() time.Duration { return min(e.spent*restShare, restMost) }

// change enters that what is wanted has changed. The first change after a rest does not
// wait.
func (i *item) change(now time.Time) {
	switch e := i.effort; {
	case e == nil:
	case !e.changed.After(i.wrote) && now.Sub(i.wrote) >= e.rest():
		i.effort = nil
	default:
		e.changed = now
	}
}

// restWait is how long an item has to rest now.
func (i *item) restWait(now time.Time) time.Duration {
	e := i.effort
	if e == nil {
		return 0
	}
	calm := e.changed.Add(min(e.spent, calmMost))
	return min(calm.Sub(now), i.wrote.Add(e.rest()).Sub(now))
}

// rests reports whether an item has to rest, and queues it for later.
func (c *cluster) rests(i *item) bool {
	wait := i.restWait(time.Now())
	if wait <= 0 {
		return false
	}
	c.soon(i, wait)
	return true
}
