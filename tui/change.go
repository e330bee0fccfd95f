package tui

import (
	"context"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Changer is a Source that can change what users write. Edit and Delete have
// the terminal to themselves, ask there before anything is changed, and return
// in a sentence what became of it.
type Changer interface {
	// Refuses says why an object cannot be changed; empty if it can be.
	Refuses(ref snapshot.Ref) string
	// Edit lets the person edit an object.
	Edit(ctx context.Context, ref snapshot.Ref) (string, error)
	// Delete asks whether to delete an object.
	Delete(ctx context.Context, ref snapshot.Ref) (string, error)
}

// changedMsg tells what became of a change.
type changedMsg struct {
	text string
	at   time.Time
}

// takeover gives the terminal to what changes an object. It implements
// tea.ExecCommand; the terminal is that of the program in any case.
type takeover struct {
	run  func() (string, error)
	said string
}

func (t *takeover) SetStdin(io.Reader)  {}
func (t *takeover) SetStdout(io.Writer) {}
func (t *takeover) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (t *takeover) Run() error {
	said, err := t.run()
	t.said = said
	return err
}

// change edits or deletes what the cursor is on or, if the source cannot, shows
// the command that does.
func (m *Model) change(v verb) tea.Cmd {
	ref := m.top().selected(&m.shared)
	if p, ok := m.top().(*readerPage); ok {
		ref = p.ref
	}
	info := ref.Kind.Info()
	words := map[verb]string{verbEdit: "edit", verbDelete: "delete"}[v]
	command := m.source.Kubectl(words + " " + info.Resource + "." + info.Group + " " + ref.Name + " -n " + ref.Namespace)
	changer, can := m.source.(Changer)
	switch {
	case command == "":
		m.say("the dashboard changes nothing here; edit the files of " + m.source.Name())
		return nil
	case !can:
		m.say("read-only, unless started with --write; or run: " + command)
		return nil
	}
	if why := changer.Refuses(ref); why != "" {
		m.say(why)
		return nil
	}
	m.log = append(m.log, command)
	ctx, do := m.ctx, changer.Edit
	if v == verbDelete {
		do = changer.Delete
	}
	t := &takeover{run: func() (string, error) { return do(ctx, ref) }}
	return tea.Exec(t, func(err error) tea.Msg {
		if err != nil {
			return changedMsg{err.Error(), time.Now()}
		}
		return changedMsg{t.said, time.Now()}
	})
}
