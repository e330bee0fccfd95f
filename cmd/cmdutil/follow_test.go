package cmdutil

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFollow: it goes on after an error, tells it once, and ends with its context.
func TestFollow(t *testing.T) {
	t.Parallel()
	streams, _, _, errs := TestStreams()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	results := []error{nil, errors.New("away"), errors.New("away"), nil, nil}
	require.NoError(t, Follow(ctx, streams, 0, func(_ context.Context, s *Streams) error {
		if calls > 0 {
			Say(s, "never seen")
		}
		if calls++; calls == len(results) {
			cancel()
		}
		return results[calls-1]
	}))
	assert.Equal(t, "Note: away; trying again.\nNote: it can be read again.\n", errs.String())
	assert.Len(t, results, calls)
	assert.ErrorContains(t, Follow(t.Context(), streams, 0, func(context.Context, *Streams) error { return errors.New("away") }), "away", "the first call")
}

func TestChanges(t *testing.T) {
	t.Parallel()
	var c Changes
	see := func(names ...string) (changed []int, gone []string) {
		return c.Seen(len(names), func(i int) string { return names[i][:1] }, func(i int) string { return names[i] })
	}
	changed, gone := see("a1", "b1")
	assert.Equal(t, []int{0, 1}, changed)
	assert.Empty(t, gone)
	changed, gone = see("a1", "b2", "c1")
	assert.Equal(t, []int{1, 2}, changed)
	assert.Empty(t, gone)
	changed, gone = see("c1")
	assert.Empty(t, changed)
	assert.Equal(t, []string{"a", "b"}, gone)

	var out strings.Builder
	table := &Table{Header: []string{"NAME", "STATE"}, Rows: [][]string{{"a", "x"}, {"long-name", "y"}}}
	require.NoError(t, c.Print(&out, table, []int{0}))
	require.NoError(t, c.Print(&out, table, []int{0, 1}))
	assert.Equal(t, "NAME        STATE\na           x\na           x\nlong-name   y\n", out.String())
}
