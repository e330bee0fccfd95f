package tui

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// search finds text in the lines of a page. The zero search finds nothing.
type search struct {
	typed   string
	pattern *regexp.Regexp
	// from is the line on which the cursor was when it began.
	from int
	// found are the lines with the text, ascending.
	found []int
}

// narrow implements page: it searches, from the line on which the cursor was, for what
// is typed.
func (p *readerPage) narrow(typed string) error {
	if typed == "" {
		p.search = search{from: p.window.cursor}
		return nil
	}
	p.search.typed, p.search.pattern = typed, compilePattern(typed)
	p.find()
	p.window.to(p.search.from)
	if at := p.search.next(p.search.from - 1); at >= 0 {
		p.window.to(at)
	}
	return nil
}

// narrowed implements page.
func (p *readerPage) narrowed() string { return p.search.typed }

// find lists the lines that have the text.
func (p *readerPage) find() {
	p.search.found = nil
	if p.search.pattern == nil {
		return
	}
	for i := range p.lines {
		if p.search.pattern.MatchString(p.lines[i].text) {
			p.search.found = append(p.search.found, i)
		}
	}
}

// next is the first line with the text after another one, round the end; -1 if no line has it.
func (s *search) next(after int) int {
	for _, at := range s.found {
		if at > after {
			return at
		}
	}
	if len(s.found) > 0 {
		return s.found[0]
	}
	return -1
}

// previous is next backwards.
func (s *search) previous(before int) int {
	for _, at := range slices.Backward(s.found) {
		if at < before {
			return at
		}
	}
	if n := len(s.found); n > 0 {
		return s.found[n-1]
	}
	return -1
}

// title says which of the lines with the text the cursor is on.
func (s *search) title(cursor int) string {
	if s.pattern == nil {
		return ""
	}
	at, on := slices.BinarySearch(s.found, cursor)
	switch {
	case len(s.found) == 0:
		return " /" + s.typed + " [not found]"
	case on:
		return fmt.Sprintf(" /%s [%d of %d]", s.typed, at+1, len(s.found))
	}
	return fmt.Sprintf(" /%s [%d]", s.typed, len(s.found))
}

// paint paints a text in a style, and what a search found in it in another.
func paint(text string, style lipgloss.Style, pattern *regexp.Regexp, found lipgloss.Style) string {
	if pattern == nil {
		return style.Render(text)
	}
	var b strings.Builder
	end := 0
	for _, at := range pattern.FindAllStringIndex(text, -1) {
		if at[0] == at[1] {
			continue
		}
		if at[0] > end {
			b.WriteString(style.Render(text[end:at[0]]))
		}
		b.WriteString(found.Render(text[at[0]:at[1]]))
		end = at[1]
	}
	if end < len(text) {
		b.WriteString(style.Render(text[end:]))
	}
	return b.String()
}
