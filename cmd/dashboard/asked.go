package dashboard

import (
	"errors"
	"sync"
	"time"

	"github.com/meshctl/meshctl/cmd/load"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// asked answers questions about the latest Index.
type asked struct {
	mu      sync.Mutex
	index   *explain.Index
	reading *load.Reading
}

func (a *asked) keep(index *explain.Index, reading *load.Reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index, a.reading = index, reading
}

// latest is the latest Index; nil before the first.
func (a *asked) latest() *explain.Index {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.index
}

// plan says what a change would do to what was read last, with the object as it is stored: that version
// may not have been read yet. Stored is nil for an object that meshctl cannot read.
func (a *asked) plan(stored snapshot.APIObject, change load.Change, now time.Time) (*explain.Planned, error) {
	a.mu.Lock()
	reading := a.reading
	a.mu.Unlock()
	if reading == nil {
		return nil, errors.New("what it would do is not known: nothing has been read yet")
	}
	current := *reading
	if stored != nil {
		input, err := reading.Input.With("", stored)
		if err != nil {
			return nil, err
		}
		current.Input = input
	}
	return current.Plan([]load.Change{change}, now)
}

// why is that of a load.Reading. What was asked of an older Index is answered from that, and what
// would allow the request is not tried.
func (a *asked) why(x *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	a.mu.Lock()
	index, reading := a.index, a.reading
	a.mu.Unlock()
	if index != x || reading == nil {
		return x.Why(from, to, request), nil
	}
	// A Translator is for one goroutine, and the source's own is in use.
	return reading.Why(engine.New(engine.Options{}), x, from, to, request)
}
