package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestFit: columns of the highest priority go first, sentences give way before
// any, and columns of priority 0 stay.
func TestFit(t *testing.T) {
	t.Parallel()
	columns := []explain.Column{{Title: "A"}, {Title: "B", Priority: 2}, {Title: "C", Sentence: true}, {Title: "D", Priority: 1}, {Title: "E", Priority: 2}}
	widths := []int{10, 10, 100, 10, 10}
	for room, want := range map[int][]int{
		148: {0, 1, 2, 3, 4}, // 4 x 10 + 100 + 4 x 2
		72:  {0, 1, 2, 3, 4}, // the sentence takes explain.MinSentence
		71:  {0, 1, 2, 3},
		59:  {0, 2, 3},
		47:  {0, 2},
		1:   {0, 2},
	} {
		assert.Equal(t, want, explain.Fit(columns, widths, 2, room), "room for %d", room)
	}
}

func TestSpell(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	since, until := explain.Column{Format: explain.Since}, explain.Column{Format: explain.Until}
	for cell, want := range map[string][2]string{
		"2026-01-02T11:50:00Z": {"10m", "10m ago"},
		"2026-01-01T00:00:00Z": {"36h", "36h ago"},
		// A clock may be behind the API server's: nothing is made in the future.
		"2026-01-02T14:00:00Z": {"0s", "in 120m"},
		"":                     {"", ""},
		"soon":                 {"soon", "soon"},
	} {
		assert.Equal(t, want, [2]string{since.Spell(cell, now), until.Spell(cell, now)}, cell)
	}
	assert.Equal(t, "2026-01-02T11:50:00Z", explain.Column{}.Spell("2026-01-02T11:50:00Z", now))
}

// BenchmarkLists makes each table of a thousand services in each of ten clusters.
func BenchmarkLists(b *testing.B) {
	index := explain.New(engine.Translate(enginetest.World(enginetest.Size{Services: 1000, Clusters: 10, FederateEvery: 10, Policies: 50})))
	for _, kind := range explain.Kinds() {
		b.Run(kind.String(), func(b *testing.B) {
			for b.Loop() {
				index.List(kind)
			}
		})
	}
	b.Run("fleet", func(b *testing.B) {
		for b.Loop() {
			index.Tables(nil).Fleet()
		}
	})
	b.Run("problems", func(b *testing.B) {
		for b.Loop() {
			index.Tables(nil).Problems(time.Time{})
		}
	})
	assert.Len(b, index.List(snapshot.Destination).Rows, 10010)
}
