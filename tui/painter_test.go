package tui

import (
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

// edits gives the terminal away again and again, and shows how often it got it back.
type edits struct{ n int }

// painted asks for the next edit: the last one is on the screen.
type painted struct{}

func (e edits) Init() tea.Cmd { return nil }

func (e edits) View() tea.View { return tea.NewView("edits: " + strconv.Itoa(e.n) + ".") }

func (e edits) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case painted:
		return e, tea.Exec(&editing{run: func() (*Draft, error) { return nil, nil }}, func(error) tea.Msg { return e.n + 1 })
	case int:
		e.n = msg
	}
	return e, nil
}

// TestScreenIsPaintedAfterAnEditor: an editor that ends at once leaves no time for what painted before.
func TestScreenIsPaintedAfterAnEditor(t *testing.T) {
	t.Parallel()
	out := &sandboxtest.Buffer{}
	p := tea.NewProgram(edits{}, tea.WithContext(t.Context()), tea.WithInput(nil), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithWindowSize(80, 24))
	ended := make(chan error, 1)
	go func() { _, err := p.Run(); ended <- err }()
	for n := range 3 {
		if !assert.Eventually(t, func() bool { return strings.Contains(out.String(), strconv.Itoa(n)+".") }, waittest.Limit(), time.Millisecond, "after edit %d", n) {
			break
		}
		p.Send(painted{})
	}
	p.Quit()
	require.NoError(t, <-ended)
}
