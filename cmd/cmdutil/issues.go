package cmdutil

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// PrintIssues paints issues in the order given, each with its next step on a
// line of its own.
func PrintIssues(out io.Writer, p Painter, indent string, issues []snapshot.Issue) error {
	var b strings.Builder
	for _, issue := range explain.MergeIssues(issues) {
		p.issue(&b, indent, &issue)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// belowSeverity is what stands before a line below one that begins with a severity.
const belowSeverity = "         "

func (p Painter) severity(s snapshot.Severity) string {
	return p.Severity(fmt.Sprintf("%-8s", s)) + " "
}

func (p Painter) issue(b *strings.Builder, indent string, issue *explain.MergedIssue) {
	rest := indent + belowSeverity
	p.Paragraph(b, indent+p.severity(issue.Severity), rest, Clean(issue.Summary()))
	p.hint(b, rest, issue.Hint)
}

func (p Painter) hint(b *strings.Builder, indent, hint string) {
	if hint != "" {
		p.Paragraph(b, indent+"→ ", indent+"  ", Clean(hint))
	}
}

// PrintIssueGroups paints what is wrong with each object in one place: several issues of one are numbered.
func PrintIssueGroups(out io.Writer, p Painter, groups []explain.IssueGroup) error {
	var b strings.Builder
	for i := range groups {
		g := &groups[i]
		if len(g.Issues) == 1 {
			p.issue(&b, "", &g.Issues[0])
			continue
		}
		p.Paragraph(&b, p.severity(g.Issues[0].Severity), belowSeverity, Clean(g.Title()))
		for n := range g.Issues {
			issue := &g.Issues[n]
			text := issue.Sentence()
			if on := issue.OnText(); on != "" {
				text = "on " + on + ": " + text
			}
			if issue.Severity != g.Issues[0].Severity {
				text = issue.Severity.String() + ": " + text
			}
			p.Numbered(&b, belowSeverity, n+1, Clean(text), Clean(issue.Hint))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Numbered paints one of several sentences about an object, with its next step.
func (p Painter) Numbered(b *strings.Builder, indent string, n int, text, hint string) {
	number := fmt.Sprintf("(%d) ", n)
	rest := indent + strings.Repeat(" ", len(number))
	p.Paragraph(b, indent+number, rest, text)
	p.hint(b, rest, hint)
}

// maxCodesNamed bounds the codes that SayExplained names.
const maxCodesNamed = 3

// SayExplained names, below a list of issues for people, the command that explains their codes. It says nothing
// without codes; the empty code is none.
func SayExplained(s *Streams, codes []snapshot.Code) {
	var names []string
	for _, code := range codes {
		if code != "" && !slices.Contains(names, string(code)) {
			names = append(names, string(code))
		}
	}
	if len(names) == 0 {
		return
	}
	more := ""
	if n := len(names) - maxCodesNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	var b strings.Builder
	s.ErrPainter().Paragraph(&b, "", "  ", Clean("\"meshctl help CODE\" explains an issue: "+strings.Join(names[:min(len(names), maxCodesNamed)], ", ")+more))
	_, _ = io.WriteString(s.Err, b.String())
}

// CodesOf are the codes of issues, in the order given.
func CodesOf(issues []snapshot.Issue) []snapshot.Code {
	codes := make([]snapshot.Code, len(issues))
	for i := range issues {
		codes[i] = issues[i].Code
	}
	return codes
}
