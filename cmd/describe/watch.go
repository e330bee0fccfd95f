package describe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
)

// watch prints what is asked for, and then what has changed, until ctx ends.
func watch(ctx context.Context, opts *Options) error {
	// Each answer is written at once, with what separates it from the one before.
	var page bytes.Buffer
	printed, streams := *opts, *opts.Streams
	streams.Out, printed.Streams = &page, &streams
	w := &watching{opts: &printed}
	return cmdutil.Follow(ctx, opts.Streams, opts.pause, func(ctx context.Context, streams *cmdutil.Streams) error {
		asked := *opts
		asked.Streams = streams
		index, err := asked.ask(ctx)
		switch {
		case err != nil:
			return err
		case opts.Name != "":
			err = w.one(index)
		default:
			err = w.list(index)
		}
		if _, failed := page.WriteTo(opts.Streams.Out); failed != nil {
			err = errors.Join(err, fmt.Errorf("print: %w", failed))
		}
		return err
	})
}

// watching is what watch has printed.
type watching struct {
	opts    *Options
	changes cmdutil.Changes
	// last is the last answer about one object as JSON; empty at first.
	last string
	// begun: something was printed.
	begun bool
}

// list prints the rows that have changed, and says which are gone.
func (w *watching) list(index *explain.Index) error {
	o := w.opts
	table, err := o.table(index)
	if err != nil {
		return err
	}
	rows := table.Rows
	contents := make([]string, len(rows))
	for i := range rows {
		// As text, what the cells show matters, without the ages, which always change.
		contents[i] = strings.Join(rows[i].Cells, "\x00")
		if !o.Output.IsTable() {
			if contents[i], err = content(rows[i].Item); err != nil {
				return err
			}
		}
	}
	changed, gone := w.changes.Seen(len(rows), func(i int) string { return rows[i].Key }, func(i int) string { return contents[i] })
	for _, key := range gone {
		cmdutil.Say(o.Streams, "Gone: %s", key)
	}
	if len(changed) == 0 {
		if !w.begun {
			w.begun = true
			return o.sayEmpty()
		}
		return nil
	}
	whole := explain.Table{Columns: table.Columns, Rows: rows}
	table.Rows = nil
	for _, i := range changed {
		table.Rows = append(table.Rows, rows[i])
	}
	if err := w.separate(o.Output.Separator()); err != nil {
		return err
	}
	return o.Output.Print(o.Streams.Out, items(table.Rows), func(out io.Writer) error {
		return w.changes.Print(out, o.fit(whole), changed)
	})
}

// one prints the answer about an object if it has changed.
func (w *watching) one(index *explain.Index) error {
	answer, err := w.opts.describe(index)
	if err != nil {
		return err
	}
	now, err := content(answer)
	if err != nil || now == w.last {
		return err
	}
	w.last = now
	separator := w.opts.Output.Separator()
	if w.opts.Output.IsTable() && w.opts.Streams.OutTTY {
		separator = "\x1b[H\x1b[2J" // the page takes the place of the one before
	}
	if err := w.separate(separator); err != nil {
		return err
	}
	return w.opts.printOne(index, answer)
}

// separate prints what stands between two answers, where data need it, or pages.
func (w *watching) separate(separator string) error {
	first := !w.begun
	w.begun = true
	if first || separator == "" || w.opts.Name == "" && w.opts.Output.IsTable() {
		return nil
	}
	if _, err := io.WriteString(w.opts.Streams.Out, separator); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// content is a value as text, to be compared.
func content(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}
