package cmdutil_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/waittest"
)

func TestProgressPlain(t *testing.T) {
	t.Parallel()
	streams, _, out, errs := cmdutil.TestStreams()
	p := cmdutil.NewProgress(streams)
	p.Start("Building")
	p.Note("%d of %d", 1, 2)
	p.Start("Starting\x1b")
	p.End(errors.New("no"))
	p.End(nil)
	assert.Empty(t, out.String(), "words go to the error stream")
	assert.Equal(t, " • Building ...\n   1 of 2\n ✓ Building\n • Starting? ...\n ✗ Starting?\n", errs.String())
}

// TestProgressLate: a step that is quick does not show.
func TestProgressLate(t *testing.T) {
	t.Parallel()
	out := &locked{}
	p := cmdutil.NewProgress(&cmdutil.Streams{Err: out})
	p.StartLate("Quick", time.Hour)
	p.End(nil)
	assert.Empty(t, out.String())
	p.StartLate("Slow", time.Millisecond)
	waittest.Until(t, "it shows", func() bool { return out.String() == " • Slow ...\n" })
	p.End(nil)
	assert.Equal(t, " • Slow ...\n ✓ Slow\n", out.String())
	p.StartLate("Late", time.Hour)
	p.Start("Next")
	p.End(nil)
	assert.Equal(t, " • Slow ...\n ✓ Slow\n • Next ...\n ✓ Next\n", out.String())
}

// locked is a writer that a test may read while others write.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestProgressTerminal(t *testing.T) {
	t.Parallel()
	out := &locked{}
	p := cmdutil.NewProgress(&cmdutil.Streams{Err: out, ErrTTY: true, Width: 40})
	p.Start("Building")
	p.Note("%s", strings.Repeat("long ", 20))
	waittest.Until(t, "the note shows", func() bool { return strings.Contains(out.String(), "Building: long") })
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() { p.Note("side by side") })
	}
	writers.Wait()
	p.End(nil)
	text := out.String()
	assert.True(t, strings.HasSuffix(text, "\r\x1b[K ✓ Building\n"), "the spinner is replaced by its result: %q", text)
	for line := range strings.SplitSeq(text, "\r\x1b[K") {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 40, "a line that wraps cannot be drawn over")
	}
}
