package tui

import (
	"strings"
	"testing"

	"github.com/meshctl/meshctl/engine/readmetest"
)

const (
	screensBegin = "<!-- painted by `make screens` -->\n"
	screensEnd   = "<!-- end of what is painted -->\n"
)

// TestScreensInReadme keeps the README's screens at what the dashboard paints.
func TestScreensInReadme(t *testing.T) {
	t.Parallel()
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
	readmetest.Section(t, "../README.md", screensBegin, screensEnd, b.String(), *update)
}
