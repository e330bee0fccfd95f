package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
)

// BenchmarkFrame moves down and paints, on each page over 10,000 destinations:
// a frame has 16 ms.
func BenchmarkFrame(b *testing.B) {
	index := explain.New(engine.Translate(enginetest.World(largeSize)))
	for id, info := range pageInfos {
		b.Run(info.names[0], func(b *testing.B) {
			m := start(b, index, NewTheme(Dark), 160, 50)
			press(b, m, string(rune('1'+id)))
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				press(b, m, []string{"j", " ", "G", "k", "g"}[i%5])
				_ = m.screen()
			}
		})
	}
}

// BenchmarkChange is what happens once per change, not per frame.
func BenchmarkChange(b *testing.B) {
	index := explain.New(engine.Translate(enginetest.World(largeSize)))
	b.Run("filter and sort", func(b *testing.B) {
		m := start(b, index, NewTheme(Dark), 160, 50)
		press(b, m, "2")
		for i := 0; b.Loop(); i++ {
			press(b, m, []string{"s", "/1\n", "S", "/2\n"}[i%4])
			_ = m.screen()
		}
	})
	b.Run("tables of new state, off the loop", func(b *testing.B) {
		update := &Update{Index: index, At: noon}
		before := prepare(update, nil)
		for b.Loop() {
			prepare(update, before)
		}
	})
}

// TestFrameInTime holds the frame to its time. On a busy machine most frames wait
// for the processor, so the fastest one of each key counts.
func TestFrameInTime(t *testing.T) {
	t.Parallel()
	index := explain.New(engine.Translate(enginetest.World(largeSize)))
	m := start(t, index, NewTheme(Dark), 160, 50)
	press(t, m, "2")
	require.Len(t, m.tables[pageDestinations].rows, 10010)
	fastest := map[string]time.Duration{}
	for range 20 {
		for _, key := range []string{"j", " ", "G", "k", "g"} {
			began := time.Now()
			press(t, m, key)
			_ = m.screen()
			took := time.Since(began)
			if best, ok := fastest[key]; !ok || took < best {
				fastest[key] = took
			}
		}
	}
	for key, took := range fastest {
		assert.Less(t, took, 16*time.Millisecond, "key %q", key)
	}
}
