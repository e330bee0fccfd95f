package apply

import (
	"sync"
	"time"
)

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

// crowd makes the statuses of great changes wait.
type crowd struct {
	mu sync.Mutex
	// since is when the statuses began to wait; last, when the last change came.
	since, last time.Time
	timer       *time.Timer // nil if none wait
}

// arrived enters a change of a number of statuses in the management cluster.
func (w *crowd) arrived(statuses int, management *cluster) {
	if statuses < crowdSize {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	pause := crowdFirst
	if now.Sub(w.last) < crowdPause {
		pause = crowdPause
	}
	w.last = now
	if w.timer != nil {
		rest := crowdMost - now.Sub(w.since)
		if rest > 0 && w.timer.Stop() {
			w.timer.Reset(min(rest, pause))
		}
		return
	}
	w.since = now
	management.holdStatuses(1)
	w.timer = time.AfterFunc(pause, func() {
		w.mu.Lock()
		w.timer = nil
		w.mu.Unlock()
		management.holdStatuses(-1)
	})
}
