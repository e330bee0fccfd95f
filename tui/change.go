package tui

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Changer is a Source that can change what users write. Edit and Delete own the
// terminal while they run, ask before they change anything, and return the
// outcome as a sentence.
type Changer interface {
	// Refuses says why an object cannot be changed; empty if it can be.
	Refuses(ref snapshot.Ref) string
	// Edit lets the person edit an object.
	Edit(ctx context.Context, ref snapshot.Ref) (string, error)
	// Delete asks whether to delete an object.
	Delete(ctx context.Context, ref snapshot.Ref) (string, error)
}

// changedMsg is the outcome of a change.
type changedMsg struct {
	text string
	at   time.Time
}

// changeCommand gives the terminal to what changes an object. It implements
// tea.ExecCommand; the terminal is that of the program in any case.
type changeCommand struct {
	run    func() (string, error)
	result string
}

func (t *changeCommand) SetStdin(io.Reader)  {}
func (t *changeCommand) SetStdout(io.Writer) {}
func (t *changeCommand) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (t *changeCommand) Run() error {
	result, err := t.run()
	t.result = result
	return err
}

// changeObject edits or deletes what the cursor is on or, if the source cannot, shows
// the command that does.
func (m *Model) changeObject(v verb) tea.Cmd {
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
		m.notify("this is read-only; edit the files of " + m.source.Name())
		return nil
	case !can:
		m.notify("read-only without --write; or run: " + command)
		return nil
	}
	if why := changer.Refuses(ref); why != "" {
		m.notify(why)
		return nil
	}
	m.log = append(m.log, command)
	ctx, do := m.ctx, changer.Edit
	if v == verbDelete {
		do = changer.Delete
	}
	t := &changeCommand{run: func() (string, error) { return do(ctx, ref) }}
	return tea.Exec(t, func(err error) tea.Msg {
		if err != nil {
			return changedMsg{err.Error(), time.Now()}
		}
		return changedMsg{t.result, time.Now()}
	})
}
