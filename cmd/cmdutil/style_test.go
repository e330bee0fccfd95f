package cmdutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// environment makes a getenv of "NAME=VALUE NAME=VALUE".
func environment(text string) func(string) string {
	values := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

func TestStyleOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Style{
		"":                                  Drawn,
		"LANG=de_DE.UTF-8":                  Drawn,
		"LANG=en_US.utf8":                   Drawn,
		"LANG=C":                            Still,
		"LC_CTYPE=de_DE@euro LANG=C.UTF-8":  Still,
		"LC_ALL=POSIX LANG=C.UTF-8":         Still,
		"LC_ALL=C.UTF-8 LC_CTYPE=C":         Drawn,
		"TERM=dumb LANG=C.UTF-8":            Still,
		"ACCESSIBLE=1 LANG=C.UTF-8":         Still,
		"TERM=xterm-256color LC_ALL=C.utf8": Drawn,
	} {
		assert.Equal(t, want, styleOf(environment(text)), text)
	}
}

func TestIsColoured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env       string
		tty, want bool
	}{
		{"", true, true},
		{"", false, false},
		{"TERM=dumb", true, false},
		{"NO_COLOR=1", true, false},
		{"CLICOLOR=0", true, false},
		{"CLICOLOR_FORCE=1", false, true},
		{"CLICOLOR_FORCE=0", false, false},
		{"CLICOLOR_FORCE=1 NO_COLOR=1", true, false},
		{"CLICOLOR_FORCE=1 TERM=dumb", false, true},
	} {
		assert.Equal(t, c.want, isColoured(environment(c.env), c.tty), "%+v", c)
	}
}

// TestStillOutput: words have marks of ASCII and the same width, and data stay as they are.
func TestStillOutput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	const text = "✗ → ── ✓ • … größer"
	o := OutputFlag{Format: FormatTable}
	table := &Table{Rows: [][]string{{text, "x"}}}
	require.NoError(t, o.Print(stillOutput{file}, nil, table.Print))
	o.Format = FormatJSON
	require.NoError(t, o.Print(stillOutput{file}, text, table.Print))
	_, err = stillWords{file}.WriteString(text)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "x > -- + * ~ größer   x\n\""+text+"\"\nx > -- + * ~ größer", string(got))
}

// TestStillProgress: with a terminal, too, each step is a line, and nothing moves.
func TestStillProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := NewProgress(&Streams{Err: &out, ErrTTY: true, Style: Still})
	p.Start("Reading")
	p.Note("1 of 2")
	p.End(nil)
	assert.Equal(t, " • Reading ...\n   1 of 2\n ✓ Reading\n", out.String())
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	const step, note = "Starting cluster-1 and cluster-2 with Istio and bookinfo", "cluster-1: Kubernetes is up, Istio is being installed"
	for _, c := range []struct {
		step, note string
		elapsed    time.Duration
		width      int
		want       string
	}{
		{"Reading", "", 0, 40, "Reading"},
		{"Reading", "", 75 * time.Second, 40, "Reading (75s)"},
		{"Reading", "1 of 2", 3 * time.Second, 40, "Reading: 1 of 2 (3s)"},
		{step, note, 3 * time.Second, 76, "Starting cluste…: cluster-1: Kubernetes is up, Istio is being installed (3s)"},
		{step, note, 3 * time.Second, 50, "Starting cluste…: cluster-1: Kubernetes is u… (3s)"},
		{step, "", time.Second, 20, "Starting clust… (1s)"},
	} {
		got := progressLine(c.step, c.note, c.elapsed, c.width)
		assert.Equal(t, c.want, got)
	}
	for width := range 100 {
		assert.LessOrEqual(t, ansi.StringWidth(progressLine(step, note, 0, width)), width)
	}
}
