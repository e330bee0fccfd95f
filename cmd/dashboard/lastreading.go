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

// lastReading is the latest Reading and its Index. It answers questions in other goroutines than the one that reads.
type lastReading struct {
	mu      sync.Mutex
	index   *explain.Index
	reading *reading.Reading
}

func (l *lastReading) keep(index *explain.Index, read *reading.Reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index, l.reading = index, read
}

// latest is the latest Index; nil before the first.
func (l *lastReading) latest() *explain.Index {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.index
}

// plan says what edits would do to what was read last, with the objects as they are stored: those versions
// may not have been read yet. Stored lacks objects that meshctl cannot read.
func (l *lastReading) plan(stored []snapshot.APIObject, edits []explain.Edit, now time.Time) (*explain.Planned, error) {
	l.mu.Lock()
	read := l.reading
	l.mu.Unlock()
	if read == nil {
		return nil, errors.New("what it would do is not known: nothing has been read yet")
	}
	current := *read
	for _, object := range stored {
		input, err := current.Input.With("", object)
		if err != nil {
			return nil, err
		}
		current.Input = input
	}
	return current.Plan(edits, now)
}

// why answers as Reading.Why does. A question about an older Index is answered from that Index, and what
// would allow the request is not tried.
func (l *lastReading) why(x *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	l.mu.Lock()
	index, read := l.index, l.reading
	l.mu.Unlock()
	if index != x || read == nil {
		return x.Why(from, to, request), nil
	}
	// A Translator is for one goroutine, and the source's own is in use.
	return read.Why(engine.New(engine.Options{}), x, from, to, request)
}
