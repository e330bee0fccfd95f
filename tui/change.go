package tui

import (
	"context"
	"io"
	"slices"
	"strings"
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
	// Review says what Drafts would do together.
	Review(ctx context.Context, drafts []Draft) *Review
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

// outcome is what became of a Draft.
type outcome struct {
	draft Draft
	// text is the sentence of Changer.Write, if err is nil.
	text string
	err  error
}

// Review is what Drafts would do.
type Review struct {
	// Refused says why they cannot be written, a line for each reason; empty if they can.
	Refused string
	// Planned may be nil if they are refused.
	Planned *explain.Planned
}

type (
	// draftedMsg are drafts to review; nil if there are none, because of text.
	draftedMsg struct {
		drafts []Draft
		text   string
		at     time.Time
	}
	// reviewedMsg is what the drafts on a page would do.
	reviewedMsg struct {
		page   *reviewPage
		drafts []Draft
		review *Review
	}
	// writtenMsg are the outcomes of the drafts on a page.
	writtenMsg struct {
		page     *reviewPage
		outcomes []outcome
		at       time.Time
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

// object is what a page is about, or else what the cursor is on.
func (m *Model) object() snapshot.Ref {
	if p, ok := m.top().(*readerPage); ok {
		return p.ref
	}
	return m.top().selected(&m.shared)
}

// changeObjects edits or deletes what is marked, or else what the cursor is on or, if the source cannot, shows the
// command that does.
func (m *Model) changeObjects(v verb) tea.Cmd {
	refs := chosen(m)
	for _, ref := range refs {
		if ref.Cluster != "" {
			m.notify("it is in cluster " + ref.Cluster + "; change it there")
			return nil
		}
	}
	commands := kubectl(m.source, map[verb]string{verbEdit: "edit", verbDelete: "delete"}[v], refs, "")
	changer, can := m.source.(Changer)
	switch {
	case len(commands) == 0:
		m.notify("this is read-only; edit the files of " + m.source.Name())
		return nil
	case !can:
		m.notify("read-only without --write; or run: " + strings.Join(commands, " && "))
		return nil
	}
	for _, ref := range refs {
		if why := changer.Refuses(ref); why != "" {
			m.notify(why)
			return nil
		}
	}
	m.log = append(m.log, commands...)
	if v == verbEdit {
		return m.edit(changer, refs[0], nil)
	}
	ctx := m.ctx
	return func() tea.Msg { return removal(ctx, changer, refs) }
}

// kubectl are the commands of kubectl that do something with objects, one for each namespace; none where there is no cluster.
func kubectl(source Source, words string, refs []snapshot.Ref, flags string) (commands []string) {
	for len(refs) > 0 {
		var here, others []snapshot.Ref
		for _, ref := range refs {
			if ref.Namespace == refs[0].Namespace {
				here = append(here, ref)
			} else {
				others = append(others, ref)
			}
		}
		oneKind := !slices.ContainsFunc(here, func(ref snapshot.Ref) bool { return ref.Kind != here[0].Kind })
		text := words
		for i, ref := range here {
			info := ref.Kind.Info()
			switch resource := info.Resource + "." + info.Group; {
			case !oneKind:
				text += " " + resource + "/" + ref.Name
			case i == 0:
				text += " " + resource + " " + ref.Name
			default:
				text += " " + ref.Name
			}
		}
		if command := source.Kubectl(text + " -n " + here[0].Namespace + flags); command != "" {
			commands = append(commands, command)
		}
		refs = others
	}
	return commands
}

// removal are the drafts that delete objects: of all of them, or of none.
func removal(ctx context.Context, changer Changer, refs []snapshot.Ref) draftedMsg {
	drafts := make([]Draft, 0, len(refs))
	for _, ref := range refs {
		draft, err := changer.Remove(ctx, ref)
		if err != nil {
			text := err.Error()
			if len(refs) > 1 {
				text += "; nothing was deleted"
			}
			return draftedMsg{text: text, at: time.Now()}
		}
		drafts = append(drafts, *draft)
	}
	return draftedMsg{drafts: drafts, at: time.Now()}
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
	return draftedMsg{drafts: []Draft{*draft}, at: time.Now()}
}

// receiveDrafts opens the review of drafts, in place of that of older ones.
func (m *Model) receiveDrafts(msg draftedMsg) tea.Cmd {
	m.now = msg.at.Unix()
	m.closeReview()
	if msg.drafts == nil {
		m.notify(snapshot.Clean(msg.text))
		return nil
	}
	page := newReview(msg.drafts)
	return tea.Batch(m.push(page), m.review(page))
}

// review works out what the drafts on a page would do.
func (m *Model) review(page *reviewPage) tea.Cmd {
	changer, can := m.source.(Changer)
	if !can {
		return nil
	}
	ctx, drafts := m.ctx, slices.Clone(page.drafts)
	return func() tea.Msg {
		review := changer.Review(ctx, drafts)
		return reviewedMsg{page, drafts, review}
	}
}

// closeReview leaves the review on the screen, if there is one.
func (m *Model) closeReview() {
	if _, reviews := m.top().(*reviewPage); reviews {
		m.stack = m.stack[: len(m.stack)-1 : len(m.stack)-1]
	}
}

// beingWritten is what a review says between the answer and the outcome.
const beingWritten = "it is being written"

// decide handles the keys that only a review has, and reports whether it was one. It does not quit while objects are written:
// some would be deleted, and some not, and nobody would learn which.
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
			m.notify(page.cannot())
		default:
			page.ended = beingWritten
			ctx, drafts := m.ctx, slices.Clone(page.drafts)
			return func() tea.Msg { return writtenMsg{page, write(ctx, changer, drafts), time.Now()} }, true
		}
	case "e":
		if page.deletes() || page.ended != "" {
			m.notify("there is nothing to edit")
			break
		}
		return m.edit(changer, page.drafts[0].Ref, &page.drafts[0]), true
	case "q":
		if page.ended != beingWritten {
			return nil, false
		}
		m.notify(beingWritten + "; esc leaves, ctrl-c quits all the same")
	case "n", "esc":
		if page.ended == "" {
			m.notify(objectsText(page.drafts) + " " + was(len(page.drafts)) + " not changed")
		}
		m.closeReview()
		return m.loadTop(), true
	default:
		return nil, false
	}
	return nil, true
}

// write carries out drafts, one after the other. One that fails does not keep the others from it.
func write(ctx context.Context, changer Changer, drafts []Draft) []outcome {
	out := make([]outcome, len(drafts))
	for i := range drafts {
		text, err := changer.Write(ctx, &drafts[i])
		out[i] = outcome{drafts[i], text, err}
	}
	return out
}

// receiveWritten shows the outcome of a change. What failed stays: to be edited again, or marked.
func (m *Model) receiveWritten(msg writtenMsg) tea.Cmd {
	m.now = msg.at.Unix()
	gone := []Draft{}
	for _, o := range msg.outcomes {
		if o.err == nil && o.draft.deletes() {
			gone = append(gone, o.draft)
		}
	}
	m.deleted = keepDeleted(m.deleted, gone)
	for _, p := range m.pages {
		for i := range gone {
			p.marks.set(gone[i].Ref, false)
		}
	}
	text, failed := msg.page.end(msg.outcomes, len(gone))
	shown := m.top() == page(msg.page)
	if failed && !shown && len(msg.outcomes) > 1 {
		text += "; " + snapshot.Clean(strings.ReplaceAll(msg.page.review.Refused, "\n", "; ")) // the page would show it
	}
	m.notify(text)
	if failed {
		return nil
	}
	if shown {
		m.closeReview()
	}
	return m.loadTop()
}
