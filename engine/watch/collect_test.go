package watch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestChangesOfPodsAreCollected: they count together, after a tenth of a second, and how many were is counted.
func TestChangesOfPodsAreCollected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, dropped := &atomic.Int64{}, &atomic.Int64{}
		c := &collector{call: func() { calls.Add(1) }, dropped: dropped}
		for range 50 {
			c.note()
			time.Sleep(time.Millisecond)
		}
		assert.Zero(t, calls.Load())
		time.Sleep(collectFor)
		synctest.Wait()
		assert.EqualValues(t, 1, calls.Load())
		assert.EqualValues(t, 49, dropped.Load())
		c.note()
		time.Sleep(collectFor)
		synctest.Wait()
		assert.EqualValues(t, 2, calls.Load())
	})
}
