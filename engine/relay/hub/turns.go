package hub

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// turns bound how many clusters are compared at once.
type turns struct {
	// places are as many as there may be; who has one puts something in.
	places chan struct{}

	mu sync.Mutex
	// waiting are those without a place, in the order in which they came, which is that in which they get one.
	waiting []*turn
}

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
func (t *turns) await(ctx context.Context, signal func()) *turn {
	own := &turn{ended: make(chan struct{})}
	select {
	case t.places <- struct{}{}: // nobody waits
		own.began.Store(true)
	default:
		t.mu.Lock()
		t.waiting = append(t.waiting, own)
		t.mu.Unlock()
	}
	go func() {
		if !own.came() {
			select {
			case <-ctx.Done():
				t.leave(own)
				return
			case t.places <- struct{}{}:
			}
			t.leave(own)
			own.began.Store(true)
		}
		defer func() { <-t.places }()
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

func (t *turns) leave(own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(other *turn) bool { return other == own })
}

// before is how many wait that came before; -1 if the turn does not wait.
func (t *turns) before(own *turn) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.waiting, own)
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
