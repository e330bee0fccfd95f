package serve

import "time"

const (
	// writeShare and echoShare are how long the loop rests while changes keep
	// coming, as a multiple of the time of the last translation. It rests long
	// after one that led to writes: changes come in groups (a Service, then its
	// endpoints), and one write is cheaper. It rests briefly after one that led to
	// none, which is mostly the echo of our own writes.
	writeShare = 9
	echoShare  = 1
	// longest bounds the rest, so that many changes to a large input are still
	// answered in time.
	longest = 500 * time.Millisecond
)

// pacer decides how long to wait between a change and its translation. After a
// quiet moment there is no wait. When changes come faster than translations
// finish, they are collected, for longer the longer a translation takes.
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

// record takes the times of a translation, and whether it led to writes.
func (p *pacer) record(began, ended time.Time, wrote bool) {
	work := ended.Sub(began)
	rest := work * echoShare
	if wrote {
		rest = work * writeShare
	}
	p.ended, p.rest = ended, min(rest, longest)
}
