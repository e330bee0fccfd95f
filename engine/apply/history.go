package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/kube"
)

// history is what is remembered of the requests about an item. Together with what exists, it says when the next one is due.
type history struct {
	// settled is the last object that was written, as it was wanted and as the API server stored it.
	settled pair
	// refusal is what is known of failures; nil if the last request did not fail.
	refusal *refusal
	// outdated is nil if what the watch has delivered is all that there is, as far as is known.
	outdated *outdated
	// conflicts counts conflicts in a row; rewrites, repairs in quick succession.
	conflicts, rewrites uint8
	// wrote is when the item was written last; effort, what that took, nil if that was little.
	wrote  time.Time
	effort *effort
	// since is since when it waits for proxies; zero if it does not.
	since time.Time
	// obstructed: see decision.
	obstructed bool
}

// Pauses after what an API server refused: 0.5 s, doubled each time, at most half a minute; or, if many objects of a cluster are
// refused, so that all together are not tried more often than once in retrySpacing.
const (
	retryFirst   = 500 * time.Millisecond
	retryMost    = 30 * time.Second
	retrySpacing = 20 * time.Millisecond
)

// refusal says how often a request failed in a row, and when it is due again. It outlives changes of the content, or an object that
// changes all the time would be tried all the time.
type refusal struct {
	// verb is the request that failed; others do not wait.
	verb  verb
	tries uint8
	due   time.Time
	// hurried is when a change was last a reason to try before the time.
	hurried time.Time
	// tried: what is wanted now is what failed. parked: it waits in an outage.
	tried, parked bool
}

func (h *history) parked() bool { return h.refusal != nil && h.refusal.parked }

// failing returns what is known of failures, to be changed.
func (h *history) failing() *refusal {
	if h.refusal == nil {
		h.refusal = &refusal{}
	}
	return h.refusal
}

// retryNow brings the next try forward, because what is wanted or what exists has changed: at most once in retryMost, so that a user's
// edit after a quiet time is written at once.
func (r *refusal) retryNow(now time.Time) {
	if r == nil {
		return
	}
	r.tried = false
	if r.tries > 0 && now.Sub(r.hurried) >= retryMost {
		r.hurried, r.due = now, now
	}
}

// dueAfter reports whether a request has to wait because it failed.
func (r *refusal) dueAfter(v verb, now time.Time) bool {
	return r != nil && r.tries > 0 && r.verb == v && r.due.After(now)
}

// refused enters a request that failed, in a cluster where that many objects fail.
func (h *history) refused(v verb, failures int, now time.Time) {
	r := h.failing()
	if r.verb != v {
		r.tries = 0
	}
	r.tries = increment(r.tries)
	wait := max(kube.Backoff(retryFirst, retryMost, int(r.tries)), time.Duration(failures)*retrySpacing)
	r.verb, r.tried, r.due = v, true, now.Add(kube.Jitter(wait))
}

func increment(n uint8) uint8 { return min(n, 254) + 1 }

// outdated is a version of an object of which a response said that there is a later one. The watch delivers that; until is for when
// it does not. Version 0 is an object that does not exist.
type outdated struct {
	version uint64
	until   time.Time
	// removed: it was deleted.
	removed bool
}

// Pauses after conflicts in a row, and after a deletion.
const (
	conflictFirst = 50 * time.Millisecond
	conflictMost  = 5 * time.Second
)

// conflicted enters a conflict.
func (h *history) conflicted(version uint64, now time.Time) {
	h.conflicts = increment(h.conflicts)
	h.outdated = &outdated{version: version, until: now.Add(kube.Backoff(conflictFirst, conflictMost, int(h.conflicts)))}
}

// Repairs of what somebody else keeps changing are spaced, so that two controllers that change the same object do not write it as
// fast as they can. The first is immediate.
const (
	repairFirst  = 200 * time.Millisecond
	repairMost   = time.Minute
	repairMemory = 10 * time.Second
	// disputed is the number of repairs in a row that is logged.
	disputed = 6
)

func repairPause(rewrites uint8) time.Duration {
	return kube.Backoff(repairFirst, repairMost, int(rewrites))
}

// repaired enters a write that no new Output caused.
func (h *history) repaired(now time.Time) {
	if now.Sub(h.wrote) < repairMemory+repairPause(h.rewrites) {
		h.rewrites = increment(h.rewrites)
	} else {
		h.rewrites = 1
	}
}

// An object whose write takes long (a VirtualService with 2,000 routes keeps an API server busy for a second) may change faster than it
// can be written: somebody deletes many policies. Then it is not written with each change, so that the API server has time for others.
// The first change is written at once. The next ones wait until the changes pause, or for restShare times what the writes took since
// the object last had a rest.
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

// changed enters that what is wanted has changed. The first change after a rest does not wait.
func (h *history) changed(now time.Time) {
	switch e := h.effort; {
	case e == nil:
	case !e.changed.After(h.wrote) && now.Sub(h.wrote) >= e.rest():
		h.effort = nil
	default:
		e.changed = now
	}
}

// rested is until when the item rests; zero if it does not have to.
func (h *history) rested() time.Time {
	e := h.effort
	if e == nil {
		return time.Time{}
	}
	calm, longest := e.changed.Add(min(e.spent, calmMost)), h.wrote.Add(e.rest())
	if longest.Before(calm) {
		return longest
	}
	return calm
}
