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

// The smallest screen.
const (
	minWidth  = 80
	minHeight = 24
)

// chrome is how many lines stand around the middle: header, tabs, heading,
// crumbs, keys.
const chrome = 5

// View implements tea.Model.
func (m *Model) View() tea.View {
	view := tea.NewView(m.screen())
	view.AltScreen = true
	return view
}

// screen is the text of the whole screen.
func (m *Model) screen() string {
	switch {
	case m.width == 0:
		return ""
	case m.width < minWidth || m.height < minHeight:
		return m.tooSmall()
	}
	lines := make([]string, 0, m.height)
	lines = append(lines, m.header(), m.tabs(), m.headingLine())
	lines = append(lines, m.top().render(&m.shared, m.width, m.height-chrome)...)
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	lines = append(lines, m.bottom(), m.hints())
	return strings.Join(lines, "\n")
}

func (m *Model) tooSmall() string {
	text := fmt.Sprintf("The screen is %dx%d; the dashboard needs %dx%d. Make it larger, or press q and use: %s",
		m.width, m.height, minWidth, minHeight, m.source.Command("describe"))
	lines := wrap(snapshot.Clean(text), m.width)
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

// header names the source, says who serves, and counts what is there.
func (m *Model) header() string {
	const name = " meshctl  "
	source := snapshot.Clean(m.source.Name())
	if m.latest.ReadError != "" {
		return m.alarm(name + "✗ not up to date: " + snapshot.Clean(m.latest.ReadError))
	}
	left, right := name, m.totals()
	if s := m.latest.Serving; s != nil {
		text, alarm := explain.ServingText(s, time.Unix(m.now, 0))
		if text = snapshot.Clean(text); alarm {
			return m.alarm(name + "✗ " + text + "  " + source)
		}
		left += text + "  "
	}
	// Who serves matters more than how much there is.
	for textWidth(left)+textWidth(right)+2 > m.width && strings.Contains(right, totalGap) {
		_, right, _ = strings.Cut(right, totalGap)
	}
	room := m.width - textWidth(right) - 3
	return m.theme.bar.Render(fit(fit(left+source, room)+"  "+right, m.width))
}

// alarm is a header that says why nothing else on the screen may be trusted.
func (m *Model) alarm(text string) string {
	return m.theme.levels[explain.Error].Render(fit(text, m.width))
}

// totalGap separates the totals.
const totalGap = "  "

func (m *Model) totals() string {
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
	if g := m.tables[pageProblems]; g != nil {
		parts = append(parts, fmt.Sprintf("✗%d !%d", g.worst[explain.Error], g.worst[explain.Warning]))
	}
	return strings.Join(parts, totalGap)
}

// tabs are the pages; the one on the screen is in brackets.
func (m *Model) tabs() string {
	var at pageID
	if p := m.list(); p != nil {
		at = p.id
	}
	var b strings.Builder
	for id := range pageCount {
		name := pageInfos[id].short
		if m.width >= 110 {
			name = pageInfos[id].title
		}
		text := strconv.Itoa(int(id)+1) + " " + name
		if id == at {
			b.WriteString(m.theme.tab.Render("[" + text + "]"))
		} else {
			b.WriteString(" " + text + " ")
		}
	}
	return b.String()
}

// headingLine is the line above the page: its title, and which part of it is shown.
func (m *Model) headingLine() string {
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

// bottom is the prompt, a message, or the pages that led to this one.
func (m *Model) bottom() string {
	switch {
	case m.prompt.kind != 0:
		return m.theme.title.Render(m.prompt.view(m.words(), m.width))
	case m.flash.text != "" && m.now < m.flash.until:
		return m.theme.title.Render(fit(" "+m.flash.text, m.width))
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

// hints are the keys that are needed most, or those of the prompt.
func (m *Model) hints() string {
	var parts []string
	switch m.prompt.kind {
	case ':':
		parts = []string{"enter go", "tab complete", "esc cancel"}
	case '/':
		parts = []string{"enter keep", "esc cancel", "!text without", "-l k=v label", "-f fuzzy"}
	default:
		for i := range keymap {
			if b := &keymap[i]; b.hint {
				parts = append(parts, b.Help().Key+" "+b.Help().Desc)
			}
		}
	}
	return m.theme.faint.Render(strings.TrimRight(fit(" "+strings.Join(parts, " · "), m.width), " "))
}
