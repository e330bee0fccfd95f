package tui

import (
	"testing"

	"github.com/meshctl/meshctl/engine/golden"
)

// TestScreensInReadme compares the screen in README.md with what the dashboard
// paints for the case bookinfo.
func TestScreensInReadme(t *testing.T) {
	t.Parallel()
	m := startWith(t, folderUpdate(load(t, "../testdata/translate/bookinfo/in")), NewTheme(NoColour), 110, 16)
	press(t, m, "5")
	golden.Section(t, "../README.md", "<!-- painted by `make screens` -->\n", "<!-- end of what is painted -->\n",
		"\n```text\n"+clip(frameOf(m).screen())+"\n```\n\n")
}
