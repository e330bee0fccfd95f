package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// turns bound how many clusters are compared at once.
type turns chan struct{}

// longestTurn is how long a cluster may be compared while others wait. An agent that takes longer goes on beside them.
const longestTurn = 10 * time.Second

// turn is that of one stream.
type turn struct {
	// began: it has come. ended is closed once it is over.
	began atomic.Bool
	ended chan struct{}
	once  sync.Once
}

// await returns at once. The turn comes later, which is told by a call of signal; or never, if ctx ends before.
func (t turns) await(ctx context.Context, signal func()) *turn {
	own := &turn{ended: make(chan struct{})}
	go func() {
		select {
		case <-ctx.Done():
			return
		case t <- struct{}{}:
		}
		defer func() { <-t }()
		own.began.Store(true)
		signal()
		limit := time.NewTimer(longestTurn)
		defer limit.Stop()
		select {
		case <-ctx.Done():
		case <-own.ended:
		case <-limit.C:
		}
	}()
	return own
}

// came reports whether the turn has come; it stays true.
func (t *turn) came() bool { return t.began.Load() }

// has reports whether the turn has come, and is not over.
func (t *turn) has() bool {
	select {
	case <-t.ended:
		return false
	default:
		return t.came()
	}
}

// end gives the turn to another cluster.
func (t *turn) end() { t.once.Do(func() { close(t.ended) }) }
