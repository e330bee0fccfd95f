package changes

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// newestFirst is a timeline the other way round.
func newestFirst(list snapshot.Changes) snapshot.Changes {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

// printText prints each change as a paragraph: when, what, and because of what.
func printText(out io.Writer, p cmdutil.Painter, list snapshot.Changes, now time.Time) error {
	var b strings.Builder
	width := 0
	for i := range list {
		width = max(width, len(clock(list[i].Time, now)))
	}
	for i := range list {
		c := &list[i]
		head := fmt.Sprintf("%*s  %-6s ", width, clock(c.Time, now), duration.HumanDuration(max(now.Sub(c.Time), 0)))
		indent := strings.Repeat(" ", len(head))
		bare := *c
		bare.Causes = nil
		p.Paragraph(&b, head, indent, cmdutil.Clean(bare.Text()))
		if because := c.Because(); because != "" {
			p.Paragraph(&b, indent+"because ", indent, cmdutil.Clean(because))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// clock is when it was, in the time zone of now: with the day if that was another one.
func clock(at, now time.Time) string {
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("Jan 02 " + time.TimeOnly)
}

// follow prints the changes, the oldest first, and each new one until ctx ends. A cluster that does not answer is
// asked again.
func (o *Options) follow(ctx context.Context, all snapshot.Changes) error {
	seen := map[string]bool{}
	began := o.Now()
	for away := ""; ; {
		var fresh snapshot.Changes
		for _, c := range o.keep(all, began) {
			if key := fmt.Sprint(c.Time, c.Times, c.On, c.What, c.Causes); !seen[key] {
				seen[key], fresh = true, append(fresh, c)
			}
		}
		if err := o.printNew(fresh); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
		now, err := o.again(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was interrupted
		case err != nil && err.Error() != away:
			away = err.Error()
			cmdutil.Say(o.Streams, "The changes cannot be read at present: %s", cmdutil.Clean(away))
		case err == nil:
			all, away = now, ""
		}
	}
}

// again reads the record once more, without notes.
func (o *Options) again(ctx context.Context) (snapshot.Changes, error) {
	management, err := o.Source.Management()
	if err != nil {
		return nil, err
	}
	return management.Changes(ctx)
}

// printNew prints changes that were not printed before, the oldest first.
func (o *Options) printNew(list snapshot.Changes) error {
	switch o.Output.Format {
	case cmdutil.FormatJSON, cmdutil.FormatYAML:
		for i := range list {
			if o.Output.Format == cmdutil.FormatYAML {
				if _, err := io.WriteString(o.Streams.Out, "---\n"); err != nil {
					return err
				}
			}
			if err := o.Output.Print(o.Streams.Out, &list[i], nil); err != nil {
				return err
			}
		}
		return nil
	case cmdutil.FormatWide:
		if len(list) == 0 {
			return nil
		}
		return cmdutil.FitTable(o.Streams, o.Output.Format, explain.Changes(newestFirst(list), ""), o.Now()).Print(o.Streams.Out)
	}
	return printText(o.Streams.Out, o.Output.Painter(o.Streams), list, o.Now())
}
