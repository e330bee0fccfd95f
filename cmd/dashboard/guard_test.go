package dashboard

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// breaks is a model whose command panics.
type breaks struct{ cmd tea.Cmd }

func (b breaks) Init() tea.Cmd                       { return b.cmd }
func (b breaks) Update(tea.Msg) (tea.Model, tea.Cmd) { return b, b.cmd }
func (b breaks) View() tea.View                      { return tea.NewView("") }

// TestGuard: the panic of a command is a message, and ends the program.
func TestGuard(t *testing.T) {
	t.Parallel()
	planted := func() tea.Msg { panic("planted") }
	g := &guard{Model: breaks{tea.Batch(planted, func() tea.Msg { return "fine" })}}
	_, cmd := g.Update(nil)
	for _, cmd := range []tea.Cmd{g.Init(), cmd} {
		batch, is := cmd().(tea.BatchMsg)
		require.True(t, is)
		require.Len(t, batch, 2)
		assert.Equal(t, "fine", batch[1]())
		broken, is := batch[0]().(brokenMsg)
		require.True(t, is)
		assert.Equal(t, "planted", broken.Value)
		assert.Contains(t, string(broken.Stack), "guard_test.go")

		_, end := g.Update(broken)
		assert.Equal(t, tea.QuitMsg{}, end())
		assert.Equal(t, broken.PanicError, g.broken)
	}
	assert.Nil(t, caught(nil))
}
