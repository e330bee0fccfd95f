package tui

import (
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/explain"
)

// rowPrefix is the room for cursor, mark and sign before a row.
const rowPrefix = 4

// gap is between two columns.
const gap = 2

// narrowest is the least width of a column.
const narrowest = 8

// layout says which columns are shown, and how wide.
type layout struct {
	columns []int
	widths  []int
}

// newLayout finds room for columns: those of low priority are left out, then
// sentences are cut, then the widest columns.
func newLayout(g *grid, room int, all bool) layout {
	var l layout
	if all {
		for i := range g.columns {
			l.columns = append(l.columns, i)
		}
	} else {
		l.columns = explain.Fit(g.columns, g.widths, gap, room)
	}
	for _, i := range l.columns {
		l.widths = append(l.widths, g.widths[i])
	}
	for at, i := range l.columns {
		if over := l.total() - room; over > 0 && g.columns[i].Sentence {
			l.widths[at] = max(l.widths[at]-over, min(l.widths[at], explain.MinSentence))
		}
	}
	for l.total() > room {
		widest := 0
		for i, w := range l.widths {
			if w > l.widths[widest] {
				widest = i
			}
		}
		if l.widths[widest] <= narrowest {
			// There is no room for all: the last ones go.
			last := len(l.columns) - 1
			l.columns, l.widths = l.columns[:last], l.widths[:last]
			continue
		}
		l.widths[widest]--
	}
	return l
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

// renderRow is one row: cursor, mark, sign and cells.
func renderRow(t *Theme, g *grid, row *gridRow, l *layout, current bool, now time.Time) string {
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
			b.WriteString(fit(cell, l.widths[at]))
		}
	}
	mark := " "
	if row.mark.sign != "" && now.Sub(row.mark.at) < markFor {
		mark = row.mark.sign
	}
	if current {
		return t.selected.Render(">" + mark + sign(row.Level) + " " + b.String())
	}
	prefix := " " + mark + sign(row.Level) + " "
	if mark != " " {
		prefix = " " + t.mark.Render(mark) + t.levels[row.Level].Render(sign(row.Level)) + " "
	} else if row.Level != explain.OK {
		prefix = "  " + t.levels[row.Level].Render(sign(row.Level)) + " "
	}
	if row.Level >= explain.Warning {
		return prefix + t.levels[row.Level].Render(b.String())
	}
	return prefix + b.String()
}
