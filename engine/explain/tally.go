package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Tally counts issues by severity. It is the one count of what is wrong: the dashboard, check, describe problems and the health
// endpoint of serve show it.
type Tally struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
}

// Count counts issues.
func Count(issues []snapshot.Issue) (t Tally) {
	for i := range issues {
		switch issues[i].Severity {
		case snapshot.Error:
			t.Errors++
		case snapshot.Warning:
			t.Warnings++
		default:
			t.Infos++
		}
	}
	return t
}

// TallyAt counts all that is wrong at a time: see IssuesAt.
func TallyAt(x *Index, now time.Time) Tally { return Count(IssuesAt(x, now)) }

// Wrong is how many issues need somebody: errors and warnings.
func (t Tally) Wrong() int { return t.Errors + t.Warnings }

// String counts in words, the worst first: "1 error, 2 warnings".
func (t Tally) String() string {
	var parts []string
	for _, part := range []struct {
		n        int
		severity snapshot.Severity
	}{{t.Errors, snapshot.Error}, {t.Warnings, snapshot.Warning}, {t.Infos, snapshot.Info}} {
		if part.n > 0 {
			parts = append(parts, snapshot.Count(part.n, part.severity.String()))
		}
	}
	if len(parts) == 0 {
		return "no issues"
	}
	return strings.Join(parts, ", ")
}

// IssuesAt lists all issues that there are at a time, worst first: those of Issues, and those that follow from the time, such as
// roots that expire soon.
func IssuesAt(x *Index, now time.Time) []snapshot.Issue {
	all := x.Issues()
	for _, v := range x.state.Plan.VirtualMeshes {
		all = append(all, describing(x).trust(v).dated(v, now)...)
	}
	slices.SortFunc(all, snapshot.Issue.Compare)
	return slices.Compact(all)
}
