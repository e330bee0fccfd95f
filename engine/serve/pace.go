package serve

import "time"

const (
	// writeShare and echoShare are how many times as long as it worked the loop
	// rests while changes keep coming: long after a round that asked for
	// writes, since what follows one change soon follows another (a Service,
	// then its endpoints), and writing once is cheaper; shortly after one that
	// asked for nothing, which is mostly the echo of our own writes.
	writeShare = 9
	echoShare  = 1
	// longest bounds the rest, so that a storm over a large world is still
	// followed.
	longest = 500 * time.Millisecond
)

// pacer decides how long to wait between a change and the answer to it. When
// nothing has happened for a moment the answer is immediate. When changes come
// faster than they can be answered they are collected, for as much longer as
// answering costs: an edit that takes a millisecond is hardly kept waiting by
// what comes back from the one before it.
type pacer struct {
	ended time.Time
	rest  time.Duration
}

// wait is how long to collect changes, now that there is one.
func (p *pacer) wait(now time.Time) time.Duration {
	if p.ended.IsZero() {
		return 0
	}
	return max(0, p.rest-now.Sub(p.ended))
}

// round notes from when to when a round was, and whether it asked for writes.
func (p *pacer) round(began, ended time.Time, wrote bool) {
	work := ended.Sub(began)
	rest := work * echoShare
	if wrote {
		rest = work * writeShare
	}
	p.ended, p.rest = ended, min(rest, longest)
}
