package describe

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
)

// list prints all objects of the kind that the search keeps.
func list(opts *Options, index *explain.Index) error {
	table := index.List(opts.Kind)
	items := []any{}
	table.Rows = slices.DeleteFunc(table.Rows, func(r explain.Row) bool {
		return len(opts.Search) > 0 && !slices.ContainsFunc(opts.Search, func(s string) bool { return strings.Contains(r.Ref.Name, s) })
	})
	for _, row := range table.Rows {
		items = append(items, row.Item)
	}
	return opts.Output.Print(opts.Streams.Out, items, func(out io.Writer) error {
		if len(items) == 0 {
			// Words, not data: a script that reads the table sees no rows.
			_, err := fmt.Fprintf(opts.Streams.Err, "No %s found.\n", strings.ToLower(opts.Kind.String()))
			return err
		}
		return paint(opts, table).Print(out)
	})
}

// paint makes text of a table: on a terminal just the columns for which there is room.
func paint(opts *Options, t explain.Table) *cmdutil.Table {
	now := opts.Now()
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
	room := opts.Streams.Width
	if !opts.Streams.OutTTY || opts.Output.Format == cmdutil.FormatWide {
		room = math.MaxInt
	}
	out := &cmdutil.Table{}
	chosen := explain.Fit(t.Columns, widths, cmdutil.TableGap, room)
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
