package tui

import (
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/explain"
)

// rowPrefix is the room for cursor, mark or news, and sign before a row.
const rowPrefix = 4

// gap is between two columns.
const gap = 2

// narrowest is the least width of a column that is shortened.
const narrowest = 10

// layout says which columns are shown, and how wide.
type layout struct {
	columns []int
	widths  []int
	// from is how many columns after the first one are to the left of the screen.
	from int
}

// newLayout finds room for columns: those of low priority are left out, then
// sentences are cut, then names are shortened, and last the last columns go. With all, or
// without the first ones after the name, of which from is the number, the last ones go first:
// → shows them.
func newLayout(g *grid, room int, all bool, from int) layout {
	l := layout{from: from}
	if all || from > 0 {
		for i := range g.columns {
			if i == 0 || i > from {
				l.columns = append(l.columns, i)
			}
		}
	} else {
		l.columns = explain.Fit(g.columns, g.widths, gap, room)
	}
	for _, i := range l.columns {
		l.widths = append(l.widths, g.widths[i])
	}
	for (all || from > 0) && l.total() > room && len(l.columns) > 2 {
		l.dropLast()
	}
	for at, i := range l.columns {
		if over := l.total() - room; over > 0 && g.columns[i].Sentence {
			l.widths[at] = max(l.widths[at]-over, min(l.widths[at], explain.MinSentence))
		}
	}
	for l.total() > room {
		// The first column names the row, and is shortened last.
		widest := 0
		for i, w := range l.widths {
			if i > 0 && w > narrowest && (widest == 0 || w > l.widths[widest]) {
				widest = i
			}
		}
		if widest == 0 && len(l.columns) > 1 {
			l.dropLast()
			continue
		}
		l.widths[widest]--
	}
	return l
}

func (l *layout) dropLast() {
	last := len(l.columns) - 1
	l.columns, l.widths = l.columns[:last], l.widths[:last]
}

// hides reports whether columns are left out, other than those to the left.
func (l *layout) hides(g *grid) bool {
	return len(l.columns) < len(g.columns)-l.from
}

func (l *layout) total() int {
	sum := 0
	for _, w := range l.widths {
		sum += w + gap
	}
	return sum - gap
}

// header is the line of titles; the one that sorts has an arrow.
func (l *layout) header(g *grid, o order) string {
	var b strings.Builder
	b.WriteString(spaces(rowPrefix))
	for at, i := range l.columns {
		if at > 0 {
			b.WriteString(spaces(gap))
		}
		title := g.columns[i].Title
		if o.column == i+1 {
			if arrow := map[bool]string{false: "↑", true: "↓"}[o.down]; textWidth(title) < l.widths[at] {
				title += arrow
			} else {
				title = arrow + title
			}
		}
		if g.columns[i].Format == explain.Number {
			b.WriteString(fitRight(title, l.widths[at]))
		} else {
			b.WriteString(fit(title, l.widths[at]))
		}
	}
	return b.String()
}

// renderRow is one row: cursor, mark or else news, sign and cells.
func renderRow(t *Theme, g *grid, row *gridRow, l *layout, current, marked bool, now time.Time) string {
	var b strings.Builder
	b.Grow(160)
	for at, i := range l.columns {
		if at > 0 {
			b.WriteString("  ")
		}
		switch cell := row.Cells[i]; g.columns[i].Format {
		case explain.Number:
			b.WriteString(fitRight(cell, l.widths[at]))
		case explain.Since, explain.Until:
			if row.values[i] != 0 {
				cell = g.columns[i].SpellTime(time.Unix(int64(row.values[i]), 0), now)
			}
			b.WriteString(fit(cell, l.widths[at]))
		default:
			if g.columns[i].Sentence {
				b.WriteString(fit(cell, l.widths[at]))
			} else {
				b.WriteString(fitName(cell, l.widths[at]))
			}
		}
	}
	before, style := " ", t.news
	switch {
	case marked:
		before, style = signMarked, t.marked
	case row.news.sign != "" && now.Sub(row.news.at) < newsFor:
		before = row.news.sign
	}
	if current {
		return t.selected.Render(">" + before + sign(row.Level) + " " + b.String())
	}
	prefix := " " + before + sign(row.Level) + " "
	if before != " " {
		prefix = " " + style.Render(before) + t.levels[row.Level].Render(sign(row.Level)) + " "
	} else if row.Level != explain.OK {
		prefix = "  " + t.levels[row.Level].Render(sign(row.Level)) + " "
	}
	switch {
	case row.Level >= explain.Warning:
		return prefix + t.levels[row.Level].Render(b.String())
	case marked:
		return prefix + t.marked.Render(b.String())
	}
	return prefix + b.String()
}
