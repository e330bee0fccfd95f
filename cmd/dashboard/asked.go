package dashboard

import (
	"errors"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// asked answers questions about the latest Index.
type asked struct {
	mu      sync.Mutex
	index   *explain.Index
	reading *reading.Reading
}

func (a *asked) keep(index *explain.Index, read *reading.Reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index, a.reading = index, read
}

// latest is the latest Index; nil before the first.
func (a *asked) latest() *explain.Index {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.index
}

// plan says what an edit would do to what was read last, with the object as it is stored: that version
// may not have been read yet. Stored is nil for an object that meshctl cannot read.
func (a *asked) plan(stored snapshot.APIObject, edit explain.Edit, now time.Time) (*explain.Planned, error) {
	a.mu.Lock()
	read := a.reading
	a.mu.Unlock()
	if read == nil {
		return nil, errors.New("what it would do is not known: nothing has been read yet")
	}
	current := *read
	if stored != nil {
		input, err := read.Input.With("", stored)
		if err != nil {
			return nil, err
		}
		current.Input = input
	}
	return current.Plan([]explain.Edit{edit}, now)
}

// why is that of a reading.Reading. What was asked of an older Index is answered from that, and what
// would allow the request is not tried.
func (a *asked) why(x *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	a.mu.Lock()
	index, read := a.index, a.reading
	a.mu.Unlock()
	if index != x || read == nil {
		return x.Why(from, to, request), nil
	}
	// A Translator is for one goroutine, and the source's own is in use.
	return read.Why(engine.New(engine.Options{}), x, from, to, request)
}
