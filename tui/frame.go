package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Below this size the screen shows less around the page; below the smallest one there is no
// room for a page.
const (
	lowHeight      = 16
	smallestWidth  = 16
	smallestHeight = 6
)

// frame is what a screen has around its page.
type frame struct{ *Model }

func frameOf(m *Model) frame { return frame{m} }

// chrome is how many lines stand around the page: header, heading and bottom line, and, on all but low
// screens, tabs and keys.
func (m frame) chrome() int {
	if m.height < lowHeight {
		return 3
	}
	return 5
}

// View implements tea.Model.
func (m *Model) View() tea.View {
	view := tea.NewView(frameOf(m).screen())
	view.AltScreen = true
	return view
}

// screen is the text of the whole screen.
func (m frame) screen() string {
	switch {
	case m.width == 0:
		return ""
	case m.width < smallestWidth || m.height < smallestHeight:
		return m.tooSmall()
	}
	low := m.height < lowHeight
	lines := append(make([]string, 0, m.height), m.header())
	if !low {
		lines = append(lines, m.tabs())
	}
	lines = append(lines, m.headingLine())
	end := len(lines) + m.height - m.chrome()
	lines = append(lines, m.pane.render(m.top(), &m.shared, m.width, m.height-m.chrome())...)
	for len(lines) < end {
		lines = append(lines, "")
	}
	lines = append(lines, m.bottom())
	if !low {
		lines = append(lines, m.hints())
	}
	return strings.Join(lines, "\n")
}

func (m frame) tooSmall() string {
	text := fmt.Sprintf("The screen is %dx%d; the dashboard needs %dx%d. Make it larger, or press q and use: %s",
		m.width, m.height, smallestWidth, smallestHeight, m.source.Command("describe"))
	lines := wrap(snapshot.Clean(text), max(m.width, 1))
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

// header names the source first, then counts what is wrong, says who serves, and counts what is there. If there is no room for all of
// it, the end is left out.
func (m frame) header() string {
	left := " " + snapshot.Clean(m.source.Name())
	if _, writes := m.source.(Changer); writes {
		left += " [WRITE]"
	}
	if m.tally != nil {
		left += fmt.Sprintf("  ✗%d !%d", m.tally.Errors, m.tally.Warnings)
	}
	if m.latest.ReadError != "" {
		return m.alarm(left + "  ✗ not up to date: " + snapshot.Clean(m.latest.ReadError))
	}
	right := m.totals()
	if s := m.latest.Serving; s != nil {
		text, alarm := explain.ServingText(s, time.Unix(m.now, 0))
		if text = snapshot.Clean(text); alarm {
			return m.alarm(left + "  ✗ " + text)
		}
		left += "  " + text
	}
	// Who serves matters more than how much there is.
	for textWidth(left)+textWidth(right)+3 > m.width && strings.Contains(right, totalGap) {
		right = right[:strings.LastIndex(right, totalGap)]
	}
	room := m.width - textWidth(right) - 3
	if textWidth(left) > room {
		return m.theme.bar.Render(fit(left, m.width))
	}
	return m.theme.bar.Render(fit(fit(left, room)+"  "+right, m.width))
}

// alarm is a header that says why nothing else on the screen may be trusted.
func (m frame) alarm(text string) string {
	return m.theme.levels[explain.Error].Render(fit(text, m.width))
}

// totalGap separates the totals.
const totalGap = "  "

func (m frame) totals() string {
	var parts []string
	add := func(id pageID, word string) {
		if g := m.tables[id]; g != nil {
			parts = append(parts, snapshot.Count(len(g.rows), word))
		}
	}
	if g := m.tables[pageFleet]; g != nil {
		parts = append(parts, snapshot.Count(len(g.clusters()), "cluster"))
	}
	add(pageDestinations, "destination")
	add(pagePolicies, "policy")
	return strings.Join(parts, totalGap)
}

// tabs are the pages; the one on the screen is in brackets. Where there is no room for all
// names, the others have only their numbers.
func (m frame) tabs() string {
	var at pageID
	if p := m.list(); p != nil {
		at = p.id
	}
	names := func(name func(pageID) string) (text string, width int) {
		var b strings.Builder
		for id := range pageCount {
			text := strings.TrimRight(strconv.Itoa(int(id)+1)+" "+name(id), " ")
			width += textWidth(text) + 2
			if id == at {
				b.WriteString(m.theme.tab.Render("[" + text + "]"))
			} else {
				b.WriteString(" " + text + " ")
			}
		}
		return b.String(), width
	}
	for _, name := range []func(pageID) string{
		func(id pageID) string { return pageInfos[id].title },
		func(id pageID) string { return pageInfos[id].short },
		func(id pageID) string {
			if id == at {
				return pageInfos[id].short
			}
			return ""
		},
	} {
		if text, width := names(name); width <= m.width {
			return text
		}
	}
	return m.theme.tab.Render(fit("["+strconv.Itoa(int(at)+1)+" "+pageInfos[at].short+"]", m.width))
}

// headingLine is the line above the page: its title, and which part of it is shown.
func (m frame) headingLine() string {
	right := ""
	if at := m.top().position(); at != "" {
		right = " " + at + " ──"
	}
	room := m.width - textWidth(right)
	text := "── " + m.top().title(&m.shared) + " "
	if n := room - textWidth(text); n > 0 {
		text += strings.Repeat("─", n)
	}
	return m.theme.accent.Render(fit(text, room) + right)
}

// bottom is the prompt, a message, on a low screen the answers to a question, or the pages that led to this one.
func (m frame) bottom() string {
	switch {
	case m.prompt.kind != 0:
		return m.theme.title.Render(m.prompt.view(m.words(), m.width))
	case m.flash.text != "" && m.now < m.flash.until:
		return m.theme.title.Render(fit(" "+m.flash.text, m.width))
	}
	if r, asks := m.top().(*reviewPage); asks && m.height < lowHeight {
		// A low screen has no line of keys, and a question needs its answers.
		return m.theme.faint.Render(strings.TrimRight(fit(" "+strings.Join(r.decisions(), hintGap), m.width), " "))
	}
	crumbs := make([]string, len(m.stack))
	for i, p := range m.stack {
		crumbs[i] = snapshot.Clean(p.crumb())
	}
	text := " " + strings.Join(crumbs, " › ")
	for textWidth(text) > m.width && len(crumbs) > 1 {
		crumbs = crumbs[1:]
		text = " … › " + strings.Join(crumbs, " › ")
	}
	return strings.TrimRight(fit(text, m.width), " ")
}

// hints are the keys of the page that do something here, or those of the prompt. Those that
// there is no room for are left out, but for help and quit.
func (m frame) hints() string {
	var parts []string
	switch {
	case m.prompt.kind == ':':
		parts = []string{"enter go", "tab complete", "↑ before", "esc cancel"}
	case m.prompt.kind == '/' && len(m.stack) > 1:
		parts = []string{"enter keep", "esc cancel", "then n and N for the next match and the one before"}
	case m.prompt.kind == '/':
		parts = []string{"enter keep", "esc cancel", "!text without", "-l k=v label", "-f fuzzy"}
	default:
		parts = m.pageHints()
	}
	return m.theme.faint.Render(strings.TrimRight(fit(" "+strings.Join(parts, hintGap), m.width), " "))
}

const hintGap = " · "

func (m frame) pageHints() []string {
	page := m.top()
	always := []hint{{verbCommand, "command"}, {verbHelp, "help"}, {verbQuit, "quit"}}
	if r, ok := page.(*reviewPage); ok {
		return r.decisions()
	}
	room := m.width - 1
	tail := make([]string, len(always))
	for i, h := range always {
		tail[i] = h.text()
		room -= textWidth(tail[i]) + textWidth(hintGap)
	}
	var parts []string
	p, lists := page.(*listPage)
	mayChange := lists && p.marks.count() > 0 || m.changes(m.object())
	shown := map[verb]bool{}
	for _, h := range append(page.keys(&m.shared), hint{verbEdit, "edit"}, hint{verbDelete, "delete"}) {
		readOnly := (h.verb == verbEdit || h.verb == verbDelete) && !mayChange
		if shown[h.verb] || readOnly || page.disabled(h.verb, &m.shared) != "" || h.verb == verbWhy && !askedAbout(m.object().Kind) || meant(m.Model, h.verb) != h.verb {
			continue
		}
		shown[h.verb] = true
		text := h.text()
		if room -= textWidth(text) + textWidth(hintGap); room < 0 {
			break
		}
		parts = append(parts, text)
	}
	return append(parts, tail...)
}

// text is a key, and what it does.
func (h hint) text() string {
	for i := range keymap {
		if keymap[i].verb == h.verb {
			return keymap[i].Help().Key + " " + h.does
		}
	}
	return ""
}
