package cmdutil

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/engine/kube"
)

// FollowPause is the least time between two readings of --watch.
const FollowPause = 2 * time.Second

// AddWatchFlag adds -w to cmd.
func AddWatchFlag(cmd *cobra.Command, watch *bool) {
	cmd.Flags().BoolVarP(watch, "watch", "w", false, "go on, and print what has changed, until interrupted")
}

// Follow calls step at once, and then again and again until ctx ends, which is no error. An error of the first call
// ends it; a later one is told once, for the cluster may answer again. Later calls are told to say nothing: their
// streams have no place for words. Between two calls is a pause, which is as long as a call took where that is longer.
func Follow(ctx context.Context, s *Streams, pause time.Duration, step func(ctx context.Context, quiet *Streams) error) error {
	streams, told := s, ""
	for {
		began := time.Now()
		err := step(ctx, streams)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was interrupted
		case err != nil && streams == s:
			return err
		case err != nil && kube.Text(err) != told:
			told = kube.Text(err)
			Say(s, "Note: %s; trying again.", told)
		case err == nil && told != "":
			told = ""
			Say(s, "Note: it can be read again.")
		}
		if streams == s {
			quiet := *s
			quiet.Err, quiet.ErrTTY = io.Discard, false
			streams = &quiet
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(pause, time.Since(began))):
		}
	}
}

// Changes finds what has changed between two lists. The zero Changes has seen none.
type Changes struct {
	seen   map[string]string
	header string
}

// Seen are the elements of a list that are new or differ from the last time, by their index, and the keys of those
// that are gone. Key names an element, and content is what is compared.
func (c *Changes) Seen(n int, key, content func(i int) string) (changed []int, gone []string) {
	now := make(map[string]string, n)
	for i := range n {
		k := key(i)
		now[k] = content(i)
		if before, had := c.seen[k]; !had || before != now[k] {
			changed = append(changed, i)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.seen)) {
		if _, has := now[k]; !has {
			gone = append(gone, k)
		}
	}
	c.seen = now
	return changed, gone
}

// Print prints just some rows of a table, below each other as in the whole one; the titles only if they have not been
// printed.
func (c *Changes) Print(out io.Writer, table *Table, rows []int) error {
	var all bytes.Buffer
	if err := table.Print(&all); err != nil {
		return err
	}
	lines := bytes.SplitAfter(all.Bytes(), []byte("\n"))
	var text bytes.Buffer
	if len(table.Header) > 0 {
		if titles := strings.Join(table.Header, "\t"); titles != c.header {
			c.header = titles
			text.Write(lines[0])
		}
		lines = lines[1:]
	}
	for _, i := range rows {
		text.Write(lines[i])
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}
