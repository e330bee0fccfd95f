package plan

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// mostRows bounds the rows of calls, and mostNames the names in one of them.
	mostRows  = 30
	mostNames = 5
)

// paintText is a plan for people: the verdict, what happens to traffic, then each object. Summary ends it after the calls.
func paintText(p *explain.Planned, painter cmdutil.Painter, summary bool) string {
	var b strings.Builder
	painter.Paragraph(&b, "Plan: ", "  ", cmdutil.Clean(p.Verdict)+".")
	if len(p.Refused) > 0 || !summary && len(p.Changes) > 0 {
		b.WriteByte('\n')
	}
	for _, r := range p.Refused {
		painter.Paragraph(&b, "! ", "  ", cmdutil.Clean(fmt.Sprintf("%s would be refused: %s", named(r.Ref), r.Reason)))
	}
	if !summary {
		for _, c := range p.Changes {
			painter.Paragraph(&b, "", "  ", cmdutil.Clean(changeText(c)))
		}
	}
	calls(&b, painter, p.Calls())
	if p.Seen != nil {
		painter.Paragraph(&b, "  ", "  ", cmdutil.Clean(sentence(p.Seen.Text())))
	}
	if summary || p.Empty() {
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

// sentence begins with a capital letter, and ends with a period.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// changeText says what becomes of an object in the files.
func changeText(c explain.PlannedChange) string {
	if c.Verb == explain.Unchanged {
		return named(c.Ref) + " stays as it is"
	}
	return named(c.Ref) + " will be " + c.Verb
}

func named(ref snapshot.Ref) string {
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

// calls writes who can call what no more, and who can from now on.
func calls(b *strings.Builder, painter cmdutil.Painter, rows []explain.CallRow) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("\nCalls:\n")
	for i, row := range rows {
		if i == mostRows {
			fmt.Fprintf(b, "  … %d more\n", len(rows)-i)
			return
		}
		painter.Paragraph(b, "  "+callWord(row)+"  ", "            ", cmdutil.Clean(names(row.From)+" → "+names(row.To)))
	}
}

func callWord(row explain.CallRow) string {
	if row.Lost {
		return "! lost  "
	}
	return "  gained"
}

// names lists the first of some objects.
func names(refs []snapshot.Ref) string {
	var out []string
	for i, ref := range refs {
		if i == mostNames {
			out = append(out, fmt.Sprintf("%d more", len(refs)-i))
			break
		}
		if ref.Kind == snapshot.Mesh {
			out = append(out, "callers in mesh "+ref.Name)
			continue
		}
		out = append(out, ref.Name)
	}
	return strings.Join(out, ", ")
}

// header names a cluster, and counts what will be done in it.
func header(p *explain.Planned, i int) string {
	c, n := &p.Clusters[i], p.Counts[i]
	name := c.Cluster
	if name == "" {
		name = "management plane"
	}
	return fmt.Sprintf("%s: %s; %s, now %d", name, c.ToDo(), snapshot.Count(n.After, "object"), n.Before)
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
