package dashboard

import (
	"sync"

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
