package apply_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEditsOfASlowObjectAreNoRepairs: an object whose writes take long is put off, and what
// users edited is still written soon, not as what another client keeps changing.
func TestEditsOfASlowObjectAreNoRepairs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.slow.Store(int64(150 * time.Millisecond))
		for n := range 100 {
			b.sink.Apply(policies(1, strconv.Itoa(n)))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(1500 * time.Millisecond)
		assert.Greater(b, b.count(), 5)
		time.Sleep(2 * time.Minute)
		assert.Zero(b, b.count(), "the last edit was written late")
	})
}

// TestAnObjectThatChangesAllTheTimeLeavesTimeForOthers: the longer an object changes faster
// than it can be written, the rarer it is written, and what it is in the end is written
// soon.
func TestAnObjectThatChangesAllTheTimeLeavesTimeForOthers(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{120 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		t.Run(slow.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				b.slow.Store(int64(slow))
				const changes, pause = 3000, 20 * time.Millisecond
				began := time.Now()
				b.sink.Apply(policies(1, "first"))
				time.Sleep(slow + 10*time.Millisecond)
				assert.Equal(b, 1, b.count(), "the first change is written at once")
				for n := range changes {
					b.sink.Apply(policies(1, strconv.Itoa(n)))
					time.Sleep(pause)
				}
				writes := 1 + b.count()
				share := float64(writes) * float64(slow) / float64(time.Since(began))
				b.Logf("writes of %s, changes every %s for %s: %d writes, %.0f%% of the time", slow, pause, time.Since(began), writes, 100*share)
				assert.Less(b, share, 0.12)
				assert.Greater(b, writes, 3, "the object is written in between")
				began = time.Now()
				require.NoError(b, b.sink.Settled(b.Context()))
				assert.Less(b, time.Since(began), 2*slow+3*time.Second)
			})
		})
	}
}

// TestEditsOfASlowObjectBySomebody who waits for each before the next: none has to wait
// much longer than a write takes.
func TestEditsOfASlowObjectBySomebody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		const slow = 800 * time.Millisecond
		b.slow.Store(int64(slow))
		for n := range 10 {
			began := time.Now()
			b.sink.Apply(policies(1, strconv.Itoa(n)))
			require.NoError(b, b.sink.Settled(b.Context()))
			assert.Less(b, time.Since(began), 3*slow, "edit %d", n)
			time.Sleep(3 * time.Second)
		}
		assert.Equal(b, 10, b.count())
		time.Sleep(time.Minute)
		began := time.Now()
		b.sink.Apply(policies(1, "one more"))
		require.NoError(b, b.sink.Settled(b.Context()))
		assert.Less(b, time.Since(began), slow+100*time.Millisecond, "after quiet time, an edit is written at once")
	})
}
