package describe

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
)

// sayNotRead says first what was not read: beside a table, which scripts may read.
func sayNotRead(opts *Options, index *explain.Index) {
	if not := index.NotRead(); not != "" {
		cmdutil.Say(opts.Streams, "%s", cmdutil.NotCertain(not))
	}
}

// list prints all objects of the kind that the search keeps.
func list(opts *Options, index *explain.Index) error {
	sayNotRead(opts, index)
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
		return cmdutil.FitTable(opts.Streams, opts.Output.Format, table, opts.Now()).Print(out)
	})
}
