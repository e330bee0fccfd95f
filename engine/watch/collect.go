package watch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// collectFor is how long changes of kinds that change in groups are collected until they count: a rollout replaces pods and endpoints one
// after the other, and each translation would be outdated by the next.
const collectFor = 100 * time.Millisecond

// changesInGroups reports whether objects of a kind rarely change alone.
func changesInGroups(k snapshot.Kind) bool { return k == snapshot.Pod || k == snapshot.EndpointSlice }

// collector makes one call of many that come within a time.
type collector struct {
	call func()
	// dropped counts calls that became one with an earlier one.
	dropped *atomic.Int64

	mu      sync.Mutex
	waiting bool
}

// note makes the call after a time, unless one is about to be made.
func (c *collector) note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		c.dropped.Add(1)
		return
	}
	c.waiting = true
	time.AfterFunc(collectFor, func() {
		c.mu.Lock()
		c.waiting = false
		c.mu.Unlock()
		c.call()
	})
}
