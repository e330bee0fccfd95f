package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// ErrInterrupted is what Run returns after ctrl-c.
var ErrInterrupted = errors.New("interrupted")

// Model is the root: it owns the pages and routes messages to them.
type Model struct {
	shared
	ctx           context.Context
	width, height int
	// stack are the pages, the one on the screen last; pages keeps the list pages
	// as they were left.
	stack  []page
	pages  [pageCount]*listPage
	past   [][]page
	future [][]page

	// pane is beside lists on wide screens.
	pane pane

	prompt prompt
	// names are those of the objects that open by name.
	names []string
	// before is what the page was narrowed by before something was typed.
	before string
	// commands are those that were typed, the last one at the end.
	commands []string
	flash    flash
	log      []string
	// deleted are the last objects that were deleted here.
	deleted []Draft
	err     error
}

// flash is a message that disappears.
type flash struct {
	text  string
	until int64
}

// flashFor is how long a message stays, in seconds.
const flashFor = 6

// New makes the dashboard of a source.
func New(ctx context.Context, source Source, theme *Theme, now time.Time) *Model {
	m := &Model{ctx: ctx, prompt: newPrompt()}
	m.shared = shared{theme: theme, source: source, latest: &Update{}, tables: map[pageID]*grid{}, now: now.Unix()}
	for id := range m.pages {
		m.pages[id] = &listPage{id: pageID(id)}
	}
	m.stack = []page{m.pages[pageFleet]}
	return m
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.wait(), tick()) }

// Err is why the dashboard ended; nil if it was quit.
func (m *Model) Err() error { return m.err }

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// wait waits for an update and makes its tables, off the loop.
func (m *Model) wait() tea.Cmd {
	ctx, source := m.ctx, m.source
	before := make(map[pageID]*grid, len(m.tables))
	for id, grid := range m.tables {
		before[id] = grid
	}
	return func() tea.Msg {
		update, err := source.Next(ctx)
		if err != nil {
			return updateMsg{err: err}
		}
		return prepared(update, before)
	}
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		m.now = time.Time(msg).Unix()
		cmd = tick()
	case updateMsg:
		cmd = m.receive(msg)
	case contentMsg:
		msg.page.setContent(msg)
	case walkedMsg:
		msg.page.receive(msg)
	case draftedMsg:
		cmd = m.receiveDrafts(msg)
	case reviewedMsg:
		msg.page.drafts = msg.drafts
		msg.page.setReview(msg.review)
	case writtenMsg:
		cmd = m.receiveWritten(msg)
	case tea.KeyPressMsg:
		cmd = m.handleKey(msg)
	case tea.PasteMsg:
		m.handlePaste(msg.Content)
	}
	return m, tea.Batch(cmd, m.refreshTop())
}

// handlePaste adds pasted text to the prompt. Elsewhere it is ignored: it is text,
// not keys.
func (m *Model) handlePaste(text string) {
	if m.prompt.kind == 0 {
		m.notify("press : or / before you paste")
		return
	}
	m.prompt.paste(text)
	m.afterTyping(typedMore)
}

// receive takes an update.
func (m *Model) receive(msg updateMsg) tea.Cmd {
	if msg.err != nil {
		m.err = msg.err
		return tea.Quit
	}
	latest := *msg.update
	if latest.Index == nil {
		latest.Index = m.latest.Index
	}
	m.latest = &latest
	for id, grid := range msg.tables {
		m.tables[id] = grid
		m.pages[id].marks.keep(grid)
	}
	if msg.tally != nil {
		m.tally = msg.tally
	}
	if msg.names != nil {
		m.names = msg.names
	}
	return tea.Batch(m.wait(), m.loadTop())
}

// loadTop loads the content of the page on the screen from the latest update.
func (m *Model) loadTop() tea.Cmd {
	switch p := m.top().(type) {
	case *readerPage:
		return p.load(m.source, m.latest.Index, m.latest.Facts)
	case *walkPage:
		return p.load(m.latest.Index)
	}
	return nil
}

func (m *Model) top() page { return m.stack[len(m.stack)-1] }

// refreshTop gives the page on the screen its size and the state of things.
func (m *Model) refreshTop() tea.Cmd {
	return m.pane.refresh(m.top(), &m.shared, m.width, m.height-frameOf(m).chrome())
}

// handleKey passes a key to what it is for.
func (m *Model) handleKey(msg tea.KeyPressMsg) tea.Cmd {
	if verbOf(msg) == verbInterrupt {
		m.err = ErrInterrupted
		return tea.Quit
	}
	if m.prompt.kind != 0 {
		return m.afterTyping(m.prompt.press(msg, m.words()))
	}
	m.flash.text = ""
	if cmd, decided := m.decide(msg.String()); decided {
		return cmd
	}
	v := meant(m, verbOf(msg))
	switch {
	case v == verbNone:
		m.notify(snapshot.Clean(msg.String()) + " is not a key here; ? lists the keys")
		return nil
	case v == verbQuit:
		return tea.Quit
	case v >= verbPage1:
		return m.visit(m.pages[v-verbPage1])
	}
	if a, reason, taken := m.pane.press(v, &m.shared); taken {
		m.flash = flash{reason, m.now + flashFor}
		return m.handleAction(a)
	}
	if reason := m.top().disabled(v, &m.shared); reason != "" {
		m.notify(reason)
		return nil
	}
	return m.perform(v)
}

// perform does what a key is for.
func (m *Model) perform(v verb) tea.Cmd {
	switch v {
	case verbFilter:
		m.before = m.top().narrowed()
		if len(m.stack) > 1 {
			m.prompt.start('/', "", nil)
			return nil
		}
		m.prompt.start('/', m.before, nil)
	case verbCommand:
		m.prompt.start(':', "", m.commands)
	case verbBack:
		return m.back()
	case verbProblems:
		m.problems = !m.problems
	case verbWide:
		m.wide = !m.wide
	case verbHelp:
		return m.push(newHelp())
	case verbLog:
		return m.push(newLog(m.log, m.deleted))
	case verbOlder, verbNewer:
		return m.goHistory(v)
	case verbNextPage, verbPreviousPage:
		if len(m.stack) > 1 {
			m.top().press(v, &m.shared)
			return nil
		}
		id := pageID(0)
		if p := m.list(); p != nil {
			id = p.id
		}
		step := pageID(1)
		if v == verbPreviousPage {
			step = pageCount - 1
		}
		return m.visit(m.pages[(id+step)%pageCount])
	case verbEquivalent:
		return m.copyCommand()
	case verbEdit, verbDelete:
		return m.changeObjects(v)
	case verbWhy:
		m.startWhy()
	case verbWalk:
		return walkFrom(m)
	default:
		return m.handleAction(m.top().press(v, &m.shared))
	}
	return nil
}

// list is the list page below all that was opened from it.
func (m *Model) list() *listPage {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if p, ok := m.stack[i].(*listPage); ok {
			return p
		}
	}
	return nil
}

// handleAction carries out the action of a page.
func (m *Model) handleAction(a action) tea.Cmd {
	switch a := a.(type) {
	case open:
		return m.push(newDetail(a.ref))
	case openYAML:
		return m.push(newYAML(a.refs...))
	case walked:
		return m.show()
	}
	return nil
}

func (m *Model) notify(text string) { m.flash = flash{text, m.now + flashFor} }
