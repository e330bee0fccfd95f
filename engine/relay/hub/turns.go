package hub

import (
	"context"
	"sync"
)

// turnsAtOnce is how many clusters are compared with what is here at the same time: each takes memory and time for a moment, and after a
// start all come at once.
const turnsAtOnce = 16

// turns lets clusters be compared one after the other, in the order in which they come.
type turns struct {
	free chan struct{}
}

func newTurns(n int) *turns {
	t := &turns{free: make(chan struct{}, n)}
	for range n {
		t.free <- struct{}{}
	}
	return t
}

// turn is one that was asked for.
type turn struct {
	// taken is closed when it is there.
	taken chan struct{}
	// done ends it, or the wait for it.
	done func()
}

// ask asks for a turn, and calls ready when it is there. It has to be ended.
func (t *turns) ask(ctx context.Context, ready func()) *turn {
	ctx, cancel := context.WithCancel(ctx)
	out := &turn{taken: make(chan struct{})}
	ended := make(chan struct{})
	out.done = sync.OnceFunc(func() { cancel(); close(ended) })
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-t.free:
		}
		close(out.taken)
		ready()
		<-ended
		t.free <- struct{}{}
	}()
	return out
}

// is reports whether the turn is there.
func (t *turn) is() bool {
	select {
	case <-t.taken:
		return true
	default:
		return false
	}
}
