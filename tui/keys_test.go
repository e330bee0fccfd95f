package tui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reading is a dashboard with the page of a destination that is longer than the screen.
func reading(t *testing.T) (*Model, *readerPage) {
	t.Helper()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 30)
	press(t, m, ":reviews.bookinfo.cluster-1\n")
	p, reads := m.top().(*readerPage)
	require.True(t, reads)
	require.Greater(t, len(p.lines), 60)
	return m, p
}

func TestSearchInAPage(t *testing.T) {
	t.Parallel()
	m, p := reading(t)
	press(t, m, "n")
	assert.Contains(t, frameOf(m).screen(), "nothing was found; / searches")
	press(t, m, "/cluster-2")
	first := p.window.cursor
	assert.Contains(t, p.lines[first].text, "cluster-2", "the page follows what is typed")
	press(t, m, "\n")
	count := strings.Count(strings.Join(texts(p.lines), "\n"), "\n") // lines
	found := 0
	for _, l := range p.lines[:count+1] {
		if strings.Contains(l.text, "cluster-2") {
			found++
		}
	}
	require.Greater(t, found, 2)
	seen := map[int]bool{}
	for range found {
		seen[p.window.cursor] = true
		press(t, m, "n")
	}
	assert.Len(t, seen, found)
	assert.Equal(t, first, p.window.cursor, "round the end")
	press(t, m, "N")
	assert.Contains(t, p.title(&m.shared), "/cluster-2 [")

	press(t, m, "/no such thing\n")
	assert.Contains(t, frameOf(m).screen(), "[not found]")
	press(t, m, "/other⎋")
	assert.Contains(t, frameOf(m).screen(), "/no such thing", "esc keeps the search before")
	press(t, m, "y/kind\n")
	assert.Contains(t, frameOf(m).screen(), "/kind [", "YAML can be searched")
}

func texts(lines []line) []string {
	out := make([]string, len(lines))
	for i := range lines {
		out[i] = lines[i].text
	}
	return out
}

func TestTabGoesToTheNextLink(t *testing.T) {
	t.Parallel()
	m, p := reading(t)
	links := 0
	for _, l := range p.lines {
		if l.ref.Name != "" {
			links++
		}
	}
	require.Greater(t, links, 3)
	seen := map[int]bool{}
	for range links {
		press(t, m, "\t")
		assert.NotEmpty(t, p.lines[p.window.cursor].ref)
		seen[p.window.cursor] = true
	}
	assert.Len(t, seen, links)
	press(t, m, "?\t")
	assert.Contains(t, frameOf(m).screen(), "no link on this page")
}

// TestPageDownMovesThePage also from the first line.
func TestPageDownMovesThePage(t *testing.T) {
	t.Parallel()
	m, p := reading(t)
	press(t, m, "⇟")
	assert.Equal(t, p.window.height, p.window.offset)
	press(t, m, "⇟⇟⇟⇟⇟")
	assert.Equal(t, len(p.lines)-p.window.height, p.window.offset, "the last page is full")
	assert.Equal(t, len(p.lines)-1, p.window.cursor)
}

// TestRightDoesNotSort: it shows the columns for which there is no room.
func TestRightDoesNotSort(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 80, 23)
	press(t, m, "2")
	before := frameOf(m).screen()
	assert.NotContains(t, before, "FEDERATED AS")
	press(t, m, "→→→→→→")
	assert.Contains(t, frameOf(m).screen(), "FEDERATED AS")
	assert.Contains(t, frameOf(m).screen(), "SERVICE", "the first column stays")
	assert.Zero(t, m.list().order)
	for m.list().from > 0 {
		press(t, m, "←")
	}
	assert.Equal(t, before, frameOf(m).screen())
}

func TestCommandsAreKept(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 30)
	press(t, m, ":policies\n:reviews.bookinfo.cluster-1\n:dest↑↑")
	assert.Equal(t, "policies", m.prompt.input.Value())
	press(t, m, "↓↓")
	assert.Equal(t, "dest", m.prompt.input.Value(), "what was typed so far is kept, too")
	press(t, m, "⎋:reviews-sh\t")
	assert.Equal(t, "reviews-shift", m.prompt.input.Value(), "objects are completed")
	press(t, m, "⎋:shift\t")
	assert.Equal(t, "reviews-shift", m.prompt.input.Value(), "also by another part of the name")
	press(t, m, "⎋:reviews-bookinfo-\t\t")
	assert.Equal(t, "reviews-bookinfo-cluster-2", m.prompt.input.Value(), "tab goes on")
}

func TestFooterOffersWhatWorks(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 160, 30)
	press(t, m, "6")
	assert.NotContains(t, frameOf(m).hints(), "enter", "there is no row")
	press(t, m, "2")
	assert.Contains(t, frameOf(m).hints(), "enter open")
	assert.NotContains(t, frameOf(m).hints(), "edit", "it is read-only")
	press(t, m, "?")
	for _, not := range []string{"problems", "filter", "YAML", "enter"} {
		assert.NotContains(t, frameOf(m).hints(), not)
	}
	assert.Contains(t, frameOf(m).hints(), "/ search")
}

func TestCommandsCanBeCopiedWhole(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 60, 30)
	const long = "meshctl describe destination reviews-bookinfo-cluster-1 --dir './a folder with spaces in its name' --context other"
	lines := commandLines(long, 40)
	require.Greater(t, len(lines), 2)
	var b strings.Builder
	for i, l := range lines {
		if i < len(lines)-1 {
			require.True(t, strings.HasSuffix(l, ` \`), l)
			l = strings.TrimSuffix(l, `\`)
		}
		b.WriteString(strings.TrimPrefix(l, "  "))
	}
	assert.Equal(t, long, b.String())

	press(t, m, "2c")
	assert.Contains(t, frameOf(m).screen(), "meshctl describe destination", "one that is too long for a line is a page")
	p, reads := m.top().(*readerPage)
	require.True(t, reads)
	p.window.to(len(p.lines) - 1)
	assert.Equal(t, "meshctl describe destination details-bookinfo-cluster-1 --dir ./manifests", p.commandLine(&m.shared))
}

// TestSmallScreens: no size fails, and what is most important stays.
func TestSmallScreens(t *testing.T) {
	t.Parallel()
	x := load(t, "../testdata/translate/bookinfo/in")
	for width := 1; width < 82; width += 4 {
		for height := 1; height < 26; height++ {
			m := start(t, x, NewTheme(NoColour), width, height)
			for _, keys := range []string{"2", "\n", "7", "?", "5", "\n", "y"} {
				press(t, m, keys)
				view := frameOf(m).screen()
				if width >= smallestWidth && height >= smallestHeight {
					fits(t, keys, view, width, height)
				}
			}
		}
	}
	m := start(t, x, NewTheme(NoColour), 40, 12)
	press(t, m, "2")
	assert.Contains(t, frameOf(m).screen(), "productpage")
}
