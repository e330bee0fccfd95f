package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// paneFrom is the least width of a screen with details beside a list.
const paneFrom = 160

// border separates a list from its details.
const border = " │ "

// pane is what stands beside a list on a wide screen: all about the row under the cursor.
type pane struct {
	// page is nil if there is nothing to show for the row.
	page *readerPage
	// focused: keys move in the details instead of in the list.
	focused bool
}

// widthOfList is the part of a screen that a list gets.
func widthOfList(s *shared, width int) int {
	if s.details {
		return width * 11 / 20
	}
	return width
}

// refresh gives the page on the screen its size and, where there is room, follows the cursor of a list. It returns what loads the
// details; nil if nothing is to be loaded.
func (p *pane) refresh(top page, s *shared, width, height int) tea.Cmd {
	list, lists := top.(*listPage)
	s.details = lists && width >= paneFrom && height >= lowestLead && !s.wide
	top.refresh(s, widthOfList(s, width), height)
	if !s.details {
		*p = pane{}
		return nil
	}
	ref, x := list.selected(s), s.latest.Index
	if ref == (snapshot.Ref{}) || x == nil || !x.Has(ref) {
		*p = pane{}
		return nil
	}
	if p.page == nil || p.page.ref != ref {
		p.page, p.focused = newDetail(ref), false
	}
	load := p.page.load(s.source, x, s.latest.Facts)
	p.page.refresh(s, paneWidth(s, width), height-1) // below its title
	return load
}

func paneWidth(s *shared, width int) int { return width - widthOfList(s, width) - textWidth(border) }

// press handles the keys that are for the details. It reports whether a key was one, and why it does nothing.
func (p *pane) press(v verb, s *shared) (a action, reason string, taken bool) {
	switch {
	case v == verbDetails && !s.details:
		return nil, "details stand beside lists on screens of 160 columns or more, unless w shows all columns; enter opens them", true
	case v == verbDetails && p.page == nil:
		return nil, "there is nothing more to show for this row", true
	case v == verbDetails:
		p.focused = !p.focused
		return nil, "", true
	case !p.focused:
		return nil, "", false
	case v == verbBack:
		p.focused = false
		return nil, "", true
	case v == verbOpen, v == verbLeft, v == verbRight, v == verbNextPage, v == verbPreviousPage:
		if reason := p.page.disabled(v, s); reason != "" {
			return nil, reason, true
		}
		return p.page.press(v, s), "", true
	}
	return nil, "", p.page.window.move(v)
}

// render gives the lines of the middle of the screen.
func (p *pane) render(top page, s *shared, width, height int) []string {
	lines := top.render(s, widthOfList(s, width), height)
	if !s.details {
		return lines
	}
	beside := p.lines(s, paneWidth(s, width), height)
	for len(lines) < height {
		lines = append(lines, "")
	}
	for i := range lines {
		lines[i] += spaces(widthOfList(s, width)-displayWidth(lines[i])) + s.theme.faint.Render(border)
		if i < len(beside) {
			lines[i] += beside[i]
		}
	}
	return lines
}

// lines are the title of the details, and below it what there is room for.
func (p *pane) lines(s *shared, width, height int) []string {
	if p.page == nil {
		return []string{s.theme.faint.Render(fit("There is nothing more to show for this row.", width))}
	}
	at := p.page.position()
	title, style := fit(p.page.title(s), width-textWidth(at)-1)+" "+at, s.theme.accent
	if p.focused {
		style = s.theme.tab
	}
	lines := []string{style.Render(title)}
	if p.page.content == nil {
		return append(lines, p.page.render(s, width, height-1)...)
	}
	w := &p.page.window
	for i := w.offset; i < min(w.offset+height-1, len(p.page.lines)); i++ {
		text := p.page.lines[i].render(s.theme, p.focused && i == w.cursor, p.page.from, width, nil)
		lines = append(lines, strings.TrimRight(text, " "))
	}
	return lines
}
