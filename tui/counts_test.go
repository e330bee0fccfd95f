package tui

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestOneCount: the header, what leads the first page, the page of problems and the checks count the same in every golden case.
func TestOneCount(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../testdata/translate/*/in")
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	more := regexp.MustCompile(`(\d+) more on page 7`)
	wrong := 0
	for _, dir := range dirs {
		index := load(t, dir)
		update := folderUpdate(index)
		want := explain.TallyAt(index, noon)
		wrong += want.Wrong()
		m := startWith(t, update, NewTheme(NoColour), 200, 200)
		view := frameOf(m).screen()
		assert.Contains(t, strings.SplitN(view, "\n", 2)[0], fmt.Sprintf("  ✗%d !%d", want.Errors, want.Warnings), dir)
		// The lead has the whole third of a high screen, so that it counts by its lines.
		led := 0
		for _, line := range m.pages[pageFleet].lead(&m.shared, 200, 190) {
			if strings.HasPrefix(line, " ✗") || strings.HasPrefix(line, " !") {
				led++
			} else if found := more.FindStringSubmatch(line); found != nil {
				n, _ := strconv.Atoi(found[1])
				led += n
			}
		}
		assert.Equal(t, want.Wrong(), led, dir)
		var rows [explain.Error + 1]int
		for i := range m.tables[pageProblems].rows {
			rows[m.tables[pageProblems].rows[i].Level]++
		}
		assert.Equal(t, [2]int{want.Errors, want.Warnings}, [2]int{rows[explain.Error], rows[explain.Warning]}, dir)
		assert.Equal(t, want, update.Checkup.Problems, dir)
		assert.Equal(t, want, countChecks(update.Checkup, want.Infos), dir)
	}
	assert.Greater(t, wrong, 100, "the cases have something to count")
}

// countChecks counts the checks that are about an issue.
func countChecks(c *explain.Checkup, infos int) explain.Tally {
	out := explain.Tally{Infos: infos}
	for _, category := range c.Categories {
		for _, check := range category.Checks {
			switch n := max(check.Count, 1); {
			case check.Code == "" && check.Count == 0:
			case check.Result == explain.CheckFailure:
				out.Errors += n
			case check.Result == explain.CheckWarning:
				out.Warnings += n
			}
		}
	}
	return out
}

// TestCountsOfATime: what follows from the time is counted where it is listed.
func TestCountsOfATime(t *testing.T) {
	t.Parallel()
	index := load(t, "../testdata/translate/trust-rotating/in")
	later := noon.AddDate(100, 0, 0)
	before, after := explain.TallyAt(index, noon), explain.TallyAt(index, later)
	assert.Greater(t, after.Errors, before.Errors, "roots have expired")
	assert.Len(t, explain.ProblemList(index, later), after.Wrong()+after.Infos)
	assert.Equal(t, after, index.Checkup(&explain.CheckFacts{Now: later, Offline: true}).Problems)
	codes := map[snapshot.Code]bool{}
	for _, issue := range explain.IssuesAt(index, later) {
		codes[issue.Code] = true
	}
	assert.True(t, codes[snapshot.RootExpires])
}
