package tui

import (
	"testing"

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
				_ = frameOf(m).screen()
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
			_ = frameOf(m).screen()
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

// TestFrameCostIsFlat: a frame costs what it shows, not what there is to show.
//
//nolint:paralleltest // AllocsPerRun counts what all goroutines allocate
func TestFrameCostIsFlat(t *testing.T) {
	cost := func(size enginetest.Size) map[string]float64 {
		m := start(t, explain.New(engine.Translate(enginetest.World(size))), NewTheme(Dark), 160, 50)
		press(t, m, "2")
		require.Greater(t, len(m.tables[pageDestinations].rows), 50, "they fill the screen")
		out := map[string]float64{}
		for _, key := range []string{"j", " ", "G", "k", "g"} {
			out[key] = testing.AllocsPerRun(20, func() {
				m.Update(keyOf(rune(key[0]))) // what it loads is described off the loop
				_ = frameOf(m).screen()
			})
		}
		return out
	}
	few := cost(enginetest.Size{Services: 50, Clusters: 2, FederateEvery: 10, Policies: 5})
	for key, allocs := range cost(largeSize) {
		assert.Less(t, allocs, 1.5*few[key], "key %q", key)
	}
}
