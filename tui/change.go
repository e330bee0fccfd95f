package tui

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Changer is a Source that can change what users write. Only Write changes anything.
type Changer interface {
	// Refuses says why an object cannot be changed; empty if it can be.
	Refuses(ref snapshot.Ref) string
	// Remove is the Draft that deletes an object.
	Remove(ctx context.Context, ref snapshot.Ref) (*Draft, error)
	// Edit lets the person edit an object, or a Draft of it once more, in an editor, which owns
	// the terminal while it runs. After is Before if nothing was changed.
	Edit(ctx context.Context, ref snapshot.Ref, draft *Draft) (*Draft, error)
	// Review says what a Draft would do.
	Review(ctx context.Context, draft *Draft) *Review
	// Write does it, and returns the outcome as a sentence. An object that is not Before any more
	// is an error; then Before becomes what is stored.
	Write(ctx context.Context, draft *Draft) (string, error)
}

// Draft is a change that is not made yet.
type Draft struct {
	Ref snapshot.Ref
	// Before and After are the object as its author wrote it, as YAML; After is empty if it is to
	// be deleted.
	Before, After string
	// UID is that of the object.
	UID string
}

// deletes reports whether the draft deletes the object.
func (d *Draft) deletes() bool { return d.After == "" }

// Review is what a Draft would do.
type Review struct {
	// Refused says why it cannot be written; empty if it can.
	Refused string
	// Planned may be nil if it is refused.
	Planned *explain.Planned
}

type (
	// draftedMsg is a draft to review; nil if there is none, because of text.
	draftedMsg struct {
		draft *Draft
		text  string
		at    time.Time
	}
	// reviewedMsg is what a draft on a page would do.
	reviewedMsg struct {
		page   *reviewPage
		draft  Draft
		review *Review
	}
	// writtenMsg is the outcome of a change.
	writtenMsg struct {
		page  *reviewPage
		draft Draft
		text  string
		err   error
		at    time.Time
	}
)

// editing gives the terminal to an editor. It implements tea.ExecCommand; the terminal is that of
// the program in any case.
type editing struct {
	run   func() (*Draft, error)
	draft *Draft
}

func (e *editing) SetStdin(io.Reader)  {}
func (e *editing) SetStdout(io.Writer) {}
func (e *editing) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (e *editing) Run() (err error) {
	e.draft, err = e.run()
	awaitPainter()
	return err
}

// mayChange reports whether a key changes what the cursor is on; true for other keys.
func (m *Model) mayChange(v verb) bool {
	if v != verbEdit && v != verbDelete {
		return true
	}
	changer, can := m.source.(Changer)
	return can && changer.Refuses(m.object()) == ""
}

// object is what a page is about, or else what the cursor is on.
func (m *Model) object() snapshot.Ref {
	if p, ok := m.top().(*readerPage); ok {
		return p.ref
	}
	return m.top().selected(&m.shared)
}

// changeObject edits or deletes what the cursor is on or, if the source cannot, shows
// the command that does.
func (m *Model) changeObject(v verb) tea.Cmd {
	ref := m.object()
	if ref.Cluster != "" {
		m.notify("it is in cluster " + ref.Cluster + "; change it there")
		return nil
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
	if v == verbEdit {
		return m.edit(changer, ref, nil)
	}
	ctx := m.ctx
	return func() tea.Msg {
		draft, err := changer.Remove(ctx, ref)
		return drafted(draft, err)
	}
}

// edit opens an object, or a draft of it once more, in an editor.
func (m *Model) edit(changer Changer, ref snapshot.Ref, draft *Draft) tea.Cmd {
	ctx := m.ctx
	e := &editing{run: func() (*Draft, error) { return changer.Edit(ctx, ref, draft) }}
	return tea.Exec(e, func(err error) tea.Msg { return drafted(e.draft, err) })
}

func drafted(draft *Draft, err error) tea.Msg {
	switch {
	case err != nil:
		return draftedMsg{text: err.Error(), at: time.Now()}
	case draft.Before == draft.After:
		return draftedMsg{text: draft.Ref.String() + " was not changed", at: time.Now()}
	}
	return draftedMsg{draft: draft, at: time.Now()}
}

// receiveDraft opens the review of a draft, in place of that of an older draft.
func (m *Model) receiveDraft(msg draftedMsg) tea.Cmd {
	m.now = msg.at.Unix()
	m.closeReview()
	if msg.draft == nil {
		m.notify(snapshot.Clean(msg.text))
		return nil
	}
	page := newReview(msg.draft)
	return tea.Batch(m.push(page), m.review(page))
}

// review works out what a draft would do.
func (m *Model) review(page *reviewPage) tea.Cmd {
	changer, can := m.source.(Changer)
	if !can {
		return nil
	}
	ctx, draft := m.ctx, *page.draft
	return func() tea.Msg {
		review := changer.Review(ctx, &draft)
		return reviewedMsg{page, draft, review}
	}
}

// closeReview leaves the review on the screen, if there is one.
func (m *Model) closeReview() {
	if _, reviews := m.top().(*reviewPage); reviews {
		m.stack = m.stack[: len(m.stack)-1 : len(m.stack)-1]
	}
}

// decide handles the keys that only a review has, and reports whether it was one.
func (m *Model) decide(key string) (cmd tea.Cmd, decided bool) {
	page, reviews := m.top().(*reviewPage)
	changer, can := m.source.(Changer)
	if !reviews || !can {
		return nil, false
	}
	switch key {
	case "y":
		switch {
		case page.ended != "":
			m.notify(page.ended)
		case page.review == nil:
			m.notify("what it would do is not known yet")
		case page.review.Refused != "":
			m.notify("it cannot be written; e edits it again, n leaves it as it was")
		default:
			page.ended = "it is being written"
			ctx, draft := m.ctx, *page.draft
			return func() tea.Msg {
				text, err := changer.Write(ctx, &draft)
				return writtenMsg{page, draft, text, err, time.Now()}
			}, true
		}
	case "e":
		if page.draft.deletes() || page.ended != "" {
			m.notify("there is nothing to edit")
			break
		}
		return m.edit(changer, page.draft.Ref, page.draft), true
	case "n", "esc":
		if page.ended == "" {
			m.notify(page.draft.Ref.String() + " was not changed")
		}
		m.closeReview()
		return m.loadTop(), true
	default:
		return nil, false
	}
	return nil, true
}

// receiveWritten shows the outcome of a change. One that failed stays, to be edited again.
func (m *Model) receiveWritten(msg writtenMsg) tea.Cmd {
	m.now = msg.at.Unix()
	if msg.err != nil {
		msg.page.ended = ""
		msg.page.draft = &msg.draft
		msg.page.setReview(&Review{Refused: msg.err.Error()})
		m.notify(snapshot.Clean(msg.err.Error()))
		return nil
	}
	msg.page.ended = snapshot.Clean(msg.text)
	if msg.draft.deletes() {
		m.deleted = append(m.deleted, msg.draft)
		m.deleted = m.deleted[max(0, len(m.deleted)-mostDeleted):]
		msg.page.ended += "; @ shows what it was"
	}
	m.notify(msg.page.ended)
	if m.top() == page(msg.page) {
		m.closeReview()
	}
	return m.loadTop()
}
