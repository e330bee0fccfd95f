package cmdutil

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/meshctl/meshctl/engine/explain"
)

// FitTable makes text of a table: on a terminal just the columns for which there is room, unless the format is wide.
func FitTable(s *Streams, format Format, t explain.Table, now time.Time) *Table {
	rows := make([][]string, len(t.Rows))
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = len(c.Title)
	}
	for i, row := range t.Rows {
		rows[i] = make([]string, len(row.Cells))
		for j, cell := range row.Cells {
			rows[i][j] = t.Columns[j].Spell(cell, now)
			widths[j] = max(widths[j], utf8.RuneCountInString(rows[i][j]))
		}
	}
	room := s.Width
	if !s.OutTTY || format == FormatWide {
		room = math.MaxInt
	}
	out := &Table{}
	chosen := explain.Fit(t.Columns, widths, TableGap, room)
	for _, i := range chosen {
		out.Header = append(out.Header, t.Columns[i].Title)
	}
	for _, row := range rows {
		cells := make([]string, len(chosen))
		for at, i := range chosen {
			cells[at] = row[i]
		}
		out.Add(cells...)
	}
	return out
}
