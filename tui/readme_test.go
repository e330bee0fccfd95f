package tui

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	screensBegin = "<!-- painted by `make screens` -->\n"
	screensEnd   = "<!-- end of what is painted -->\n"
)

// TestScreensInReadme keeps the README's screens at what the dashboard paints.
func TestScreensInReadme(t *testing.T) {
	t.Parallel()
	const readme = "../README.md"
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), screensBegin)
	require.True(t, ok, "README.md has lost the line %q", screensBegin)
	painted, after, ok := strings.Cut(rest, screensEnd)
	require.True(t, ok, "README.md has lost the line %q", screensEnd)
	var b strings.Builder
	news := recorded(load(t, "../testdata/translate/bookinfo/in"))
	for _, s := range []struct {
		keys   string
		height int
	}{{"5", minHeight}, {":reviews.bookinfo.cluster-1\n", 45}} {
		m := startWith(t, news, NewTheme(NoColour), 110, s.height)
		press(t, m, s.keys)
		b.WriteString("\n```text\n" + clip(m.View()) + "\n```\n")
	}
	b.WriteString("\n")
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(before+screensBegin+b.String()+screensEnd+after), 0o600))
		return
	}
	assert.Equal(t, b.String(), painted, "the screens are not what the dashboard paints; run make screens")
}
