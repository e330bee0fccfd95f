package plan

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// paintText is a plan for people: what happens to traffic first, then each object.
func paintText(p *explain.Planned, painter cmdutil.Painter) string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s %s/%s\n", c.Verb, c.Ref.Kind, cmdutil.Clean(c.Ref.Namespace), cmdutil.Clean(c.Ref.Name))
	}
	if p.Empty() {
		b.WriteString("\nNothing would change.\n")
		return b.String()
	}
	b.WriteString("\nWhat it does to traffic:\n")
	if len(p.Effects) == 0 {
		b.WriteString("  nothing\n")
	}
	for i := range p.Effects {
		painter.Paragraph(&b, "  "+p.Effects[i].Mark()+" ", "    ", cmdutil.Clean(p.Effects[i].Text()))
	}
	issues(&b, painter, "New issues:", p.NewIssues)
	issues(&b, painter, "Issues that this fixes:", p.FixedIssues)
	for _, note := range p.Notes {
		b.WriteByte('\n')
		painter.Paragraph(&b, "Note: ", "  ", cmdutil.Clean(note)+".")
	}
	for i := range p.Clusters {
		fmt.Fprintf(&b, "\n%s\n", cmdutil.Clean(header(p, i)))
		b.WriteString(cmdutil.CleanLines(indented(p.Clusters[i].Text()))) // differences are not wrapped
	}
	return b.String()
}

// header names a cluster, and counts what changes in it.
func header(p *explain.Planned, i int) string {
	c, n := &p.Clusters[i], p.Counts[i]
	name := c.Cluster
	if name == "" {
		name = "management plane"
	}
	return fmt.Sprintf("%s: %s; %s, before %d", name, c.Verbs(), snapshot.Count(n.After, "object"), n.Before)
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

func issues(b *strings.Builder, painter cmdutil.Painter, title string, list []snapshot.Issue) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, issue := range list {
		painter.Paragraph(b, "  "+painter.Severity(issue.Severity.String())+"  ", "    ", cmdutil.Clean(issue.Summary()))
		if issue.Hint != "" {
			painter.Paragraph(b, "    → ", "      ", cmdutil.Clean(issue.Hint))
		}
	}
}

// paintMarkdown is a plan for the description of a pull request.
func paintMarkdown(p *explain.Planned) string {
	var b strings.Builder
	b.WriteString("## meshctl plan\n\n")
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "- %s %s `%s/%s`\n", c.Verb, c.Ref.Kind, c.Ref.Namespace, c.Ref.Name)
	}
	if p.Empty() {
		b.WriteString("\nNothing would change.\n")
		return cmdutil.CleanLines(b.String())
	}
	b.WriteString("\n### What it does to traffic\n\n")
	if len(p.Effects) == 0 {
		b.WriteString("Nothing.\n")
	}
	for i := range p.Effects {
		before := ""
		if p.Effects[i].Harm {
			before = ":warning: "
		}
		fmt.Fprintf(&b, "- %s%s\n", before, escaped(p.Effects[i].Text()))
	}
	markdownIssues(&b, "New issues", p.NewIssues)
	markdownIssues(&b, "Issues that this fixes", p.FixedIssues)
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\n> %s\n", escaped(note))
	}
	for i := range p.Clusters {
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", escaped(header(p, i)))
		text := p.Clusters[i].Text()
		fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
		fmt.Fprintf(&b, "%sdiff\n%s%s\n\n</details>\n", fence, text, fence)
	}
	return cmdutil.CleanLines(b.String())
}

func markdownIssues(b *strings.Builder, title string, list []snapshot.Issue) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", title)
	for _, issue := range list {
		fmt.Fprintf(b, "- **%s** %s\n", issue.Severity, escaped(issue.Summary()))
	}
}

// escaped keeps strings of clusters from being read as Markdown or HTML.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "@", "@\u200b", "#", `\#`).Replace(text)
}

// longestRun is the length of the longest run of a character.
func longestRun(text string, char rune) (longest int) {
	run := 0
	for _, c := range text {
		if c != char {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
