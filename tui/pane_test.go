package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDetails: what keys do on screens with and without details beside a list.
func TestDetails(t *testing.T) {
	t.Parallel()
	bookinfo := load(t, "../testdata/translate/bookinfo/in")
	for name, c := range map[string]struct {
		width, height int
		keys          string
		has, hasNot   string
	}{
		"narrow":                    {159, 45, "5", "> ✗ TrafficPolicy  patient", " │ "},
		"narrow, the key":           {159, 45, "5d", "details stand beside lists on screens of 160 columns", " │ "},
		"low":                       {200, 15, "5", "> ✗ TrafficPolicy  patient", " │ "},
		"wide":                      {160, 45, "5", "│ TrafficPolicy gloo-mesh/patient", "Loading"},
		"following the cursor":      {160, 45, "5j", "│ TrafficPolicy gloo-mesh/reviews-shift", "│ TrafficPolicy gloo-mesh/patient"},
		"the cursor in the details": {160, 45, "5dj", "│ >   Does", ""},
		"a filter leaves them":      {160, 45, "5d/product\n", "│ AccessPolicy gloo-mesh/productpage-calls", "│ >"},
		"all columns":               {160, 45, "5w", "NAMESPACE", " │ "},
		"nothing under the cursor":  {160, 45, "5/no such thing\nd", "there is nothing more to show for this row", "Loading"},
		"another page":              {160, 45, "5d\n", "this line has nothing to open", ""},
		"opened":                    {160, 45, "5\n", "── TrafficPolicy gloo-mesh/patient", " │ "},
		"in the object":             {160, 45, "5\nd", "details stand beside lists", " │ "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := start(t, bookinfo, NewTheme(NoColour), c.width, c.height)
			press(t, m, c.keys)
			view := frameOf(m).screen()
			fits(t, name, view, c.width, c.height)
			assert.Contains(t, view, c.has)
			if c.hasNot != "" {
				assert.NotContains(t, view, c.hasNot)
			}
		})
	}
}

// TestDetailsAreOfTheLatestUpdate: what is read anew is shown anew, where the reader was.
func TestDetailsAreOfTheLatestUpdate(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 160, 45)
	press(t, m, "5djj")
	at := m.pane.page
	require.Equal(t, 2, at.window.cursor)
	update := folderUpdate(load(t, "../testdata/translate/bookinfo/in"))
	_, cmd := m.Update(prepared(update, nil))
	batch, ok := cmd().(tea.BatchMsg)
	require.True(t, ok)
	m.Update(batch[len(batch)-1]())
	assert.Same(t, at, m.pane.page)
	assert.Same(t, update.Index, at.index)
	assert.Equal(t, 2, at.window.cursor)
	assert.True(t, m.pane.focused)
	assert.Contains(t, frameOf(m).screen(), "│ TrafficPolicy gloo-mesh/patient")

	// A terminal that becomes narrow has no details, and no keys for them.
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 45})
	press(t, m, "j")
	assert.NotContains(t, frameOf(m).screen(), " │ ")
	assert.Contains(t, frameOf(m).screen(), ">   TrafficPolicy  reviews-shift")
}
