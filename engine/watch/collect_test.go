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
		calls, dropped := 0, &atomic.Int64{}
		c := &collector{call: func() { calls++ }, dropped: dropped}
		for range 50 {
			c.note()
			time.Sleep(time.Millisecond)
		}
		assert.Zero(t, calls)
		time.Sleep(collectFor)
		synctest.Wait()
		assert.Equal(t, 1, calls)
		assert.EqualValues(t, 49, dropped.Load())
		c.note()
		time.Sleep(collectFor)
		synctest.Wait()
		assert.Equal(t, 2, calls)
	})
}
