package describe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// onTerminal is what describe prints of a destination on a terminal of a width; 0 is no terminal.
func onTerminal(t *testing.T, width int, colour bool, format cmdutil.Format) string {
	t.Helper()
	streams, _, out, _ := cmdutil.TestStreams()
	streams.OutTTY, streams.Width, streams.Colour = width > 0, width, colour
	opts := &Options{
		Streams: streams, Kind: snapshot.Destination, Name: "reviews-bookinfo-cluster-1", Now: noon,
		Source: cmdutil.Source{Dir: "../../testdata/translate/bookinfo/in"},
	}
	opts.Output.Format = format
	require.NoError(t, describeRun(t.Context(), opts))
	return out.String()
}

// TestGoldenWidths: text is wrapped between words on a terminal, whatever its width, and is whole
// elsewhere.
func TestGoldenWidths(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80} {
		golden.File(t, fmt.Sprintf("testdata/destination-%d.txt", width), onTerminal(t, width, false, cmdutil.FormatTable))
	}
	whole := onTerminal(t, 0, false, cmdutil.FormatTable)
	golden.File(t, "../../testdata/translate/bookinfo/describe/destination-reviews-bookinfo-cluster-1.txt", whole)
	assert.Equal(t, whole, onTerminal(t, 60, false, cmdutil.FormatWide), "-o wide is not wrapped")
	for width := 30; width <= 300; width += 7 {
		text := onTerminal(t, width, false, cmdutil.FormatTable)
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if ansi.StringWidth(strings.TrimSuffix(line, "\n")) > width {
				// A title of up to two words, and a value that is one word.
				assert.LessOrEqual(t, len(words), 3, "%d columns: a line that could be wrapped: %q", width, line)
			}
		}
	}
}

// TestSeveritiesHaveColours: only where colours may be used, on a terminal or because the user asks for them, and nothing
// but the colours differs.
func TestSeveritiesHaveColours(t *testing.T) {
	t.Parallel()
	plain, coloured := onTerminal(t, 80, false, cmdutil.FormatTable), onTerminal(t, 80, true, cmdutil.FormatTable)
	assert.Regexp(t, "\x1b\\[31merror +\x1b\\[m", coloured)
	assert.NotContains(t, plain, "\x1b")
	assert.Equal(t, plain, ansi.Strip(coloured))
	forced := onTerminal(t, 0, true, cmdutil.FormatTable)
	assert.Regexp(t, "\x1b\\[31merror +\x1b\\[m", forced)
	assert.Equal(t, onTerminal(t, 0, false, cmdutil.FormatTable), ansi.Strip(forced), "no line is wrapped")
}
