package describe

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sayNotRead says first what was not read: beside a table, which scripts may read.
func sayNotRead(opts *Options, index *explain.Index) {
	if not := index.NotRead(); not != "" {
		cmdutil.Say(opts.Streams, "%s", cmdutil.NotCertain(not))
	}
}

// list prints the objects that the flags keep.
func list(opts *Options, index *explain.Index) error {
	sayNotRead(opts, index)
	table, err := opts.table(index)
	if err != nil {
		return err
	}
	return opts.Output.Print(opts.Streams.Out, items(table.Rows), func(out io.Writer) error {
		if len(table.Rows) == 0 {
			return opts.sayEmpty()
		}
		return opts.fit(table).Print(out)
	})
}

// table has the objects that the flags keep, in their order.
func (o *Options) table(index *explain.Index) (explain.Table, error) {
	table := index.List(o.Kind)
	if o.Kind == snapshot.NoKind {
		table = index.Tables(nil).Policies()
	}
	l := &o.List
	table.Rows = slices.DeleteFunc(table.Rows, func(r explain.Row) bool {
		return len(l.Search) > 0 && !slices.ContainsFunc(l.Search, func(s string) bool { return strings.Contains(r.Ref.Name, s) }) ||
			l.Namespace != "" && r.Ref.Namespace != l.Namespace || !l.Selector.Matches(r.Labels)
	})
	return table, cmdutil.Sort(&l.Sort, table.Rows, func(r explain.Row) any { return r.Item })
}

// fit is the table as it is printed.
func (o *Options) fit(table explain.Table) *cmdutil.Table {
	fitted := cmdutil.FitTable(o.Streams, o.Output.Format, table, o.Now())
	if o.Output.NoHeaders {
		fitted.Header = nil
	}
	return fitted
}

// items are rows as data.
func items(rows []explain.Row) []any {
	out := make([]any, len(rows))
	for i, row := range rows {
		out[i] = row.Item
	}
	return out
}

// sayEmpty says that there is nothing. These are words, not data: a script that reads the table sees no rows.
func (o *Options) sayEmpty() error {
	what, where := "policy", ""
	if o.Kind != snapshot.NoKind {
		what = strings.ToLower(o.Kind.String())
	}
	if o.List.Namespace != "" {
		where = " in namespace " + cmdutil.Clean(o.List.Namespace)
	}
	_, err := fmt.Fprintf(o.Streams.Err, "No %s found%s.\n", what, where)
	return err
}
