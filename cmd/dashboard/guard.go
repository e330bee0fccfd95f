package dashboard

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/kube"
)

// guard is a model whose commands may panic. Bubble Tea reports such a panic while it
// gives the terminal back, so that the report is on the screen that is left, or is lost
// because the process ends first. A guard ends the program with it instead, for what
// started the program to report.
type guard struct {
	tea.Model
	// broken is the panic of a command; nil if there was none.
	broken *kube.PanicError
}

// brokenMsg is the panic of a command.
type brokenMsg struct{ *kube.PanicError }

// Init implements tea.Model.
func (g *guard) Init() tea.Cmd { return caught(g.Model.Init()) }

// Update implements tea.Model.
func (g *guard) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if broken, is := msg.(brokenMsg); is {
		g.broken = broken.PanicError
		return g, tea.Quit
	}
	model, cmd := g.Model.Update(msg)
	g.Model = model
	return g, caught(cmd)
}

// caught is a command that returns its panic as a message, and so do those that it
// returns.
func caught(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		var broken *kube.PanicError
		if errors.As(kube.Catch(func() { msg = cmd() }), &broken) {
			return brokenMsg{broken}
		}
		if batch, is := msg.(tea.BatchMsg); is {
			for i := range batch {
				batch[i] = caught(batch[i])
			}
		}
		return msg
	}
}
