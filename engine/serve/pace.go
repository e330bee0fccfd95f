package serve

import "time"

const (
	// share is how many times as long as it worked the loop rests while
	// changes keep coming: it works at most a quarter of the time.
	share = 3
	// longest bounds the rest, so that a storm over a large world is still
	// followed.
	longest = 500 * time.Millisecond
)

// pacer decides how long to wait between a change and the answer to it. When
// nothing has happened for a moment the answer is immediate. When changes come
// faster than they can be answered they are collected, for as much longer as
// answering costs: an edit that takes a millisecond is never kept waiting for
// what comes back from the one before it.
type pacer struct{ began, ended time.Time }

// wait is how long to collect changes, now that there is one.
func (p *pacer) wait(now time.Time) time.Duration {
	if p.ended.IsZero() {
		return 0
	}
	rest := min(share*p.ended.Sub(p.began), longest)
	return max(0, rest-now.Sub(p.ended))
}

// round notes from when to when a round was.
func (p *pacer) round(began, ended time.Time) { p.began, p.ended = began, ended }
