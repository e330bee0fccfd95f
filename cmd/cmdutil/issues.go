package cmdutil

import (
	"fmt"
	"io"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// PrintIssues paints issues in the order given, each with its next step on a
// line of its own.
func PrintIssues(out io.Writer, p Painter, indent string, issues []snapshot.Issue) error {
	var b strings.Builder
	for _, issue := range issues {
		rest := indent + "         "
		p.Paragraph(&b, indent+p.Severity(fmt.Sprintf("%-8s", issue.Severity))+" ", rest, Clean(issue.Summary()))
		if issue.Hint != "" {
			p.Paragraph(&b, rest+"→ ", rest+"  ", Clean(issue.Hint))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// CountIssues says how many issues of each severity there are: "1 error, 2 warnings".
func CountIssues(issues []snapshot.Issue) string {
	var n [snapshot.Error + 1]int
	for _, issue := range issues {
		n[issue.Severity]++
	}
	var parts []string
	for s := int(snapshot.Error); s >= int(snapshot.Info); s-- {
		if n[s] > 0 {
			parts = append(parts, snapshot.Count(n[s], snapshot.Severity(s).String()))
		}
	}
	if len(parts) == 0 {
		return "no issues"
	}
	return strings.Join(parts, ", ")
}
