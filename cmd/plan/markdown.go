package plan

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// paintMarkdown is a plan for the description of a pull request. Summary ends it after the calls.
func paintMarkdown(p *explain.Planned, summary bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## meshctl plan: %s\n", escaped(p.Verdict))
	if len(p.Refused) > 0 {
		b.WriteByte('\n')
	}
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "- :x: %s would be refused: %s\n", markdownName(r.Ref), escaped(r.Reason))
	}
	if !summary && len(p.Changes) > 0 {
		b.WriteByte('\n')
		for _, c := range p.Changes {
			end := " will be " + c.Verb
			if c.Verb == explain.Unchanged {
				end = " stays as it is"
			}
			fmt.Fprintf(&b, "- %s%s\n", markdownName(c.Ref), end)
		}
	}
	markdownCalls(&b, p.Calls())
	if p.Seen != nil {
		fmt.Fprintf(&b, "\n%s\n", escaped(sentence(p.Seen.Text())))
	}
	if summary || p.Empty() {
		return cmdutil.CleanLines(b.String())
	}
	b.WriteString("\n### What it does to traffic\n\n")
	if len(p.Effects) == 0 {
		b.WriteString("Nothing.\n")
	}
	for i := range p.Effects {
		before := ""
		if e := &p.Effects[i]; e.Harm || e.Opens {
			before = ":warning: "
		}
		fmt.Fprintf(&b, "- %s%s\n", before, escaped(p.Effects[i].Text()))
	}
	markdownIssues(&b, "New issues", p.NewIssues)
	markdownIssues(&b, "Issues that this fixes", p.FixedIssues)
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\n> %s\n", escaped(note))
	}
	if p.Graph != nil {
		markdownGraph(&b, "Calls as they are", p.Graph.Before)
		markdownGraph(&b, "Calls as they will be; what is new is thick", p.Graph.After)
	}
	for i := range p.Clusters {
		markdownBlock(&b, header(p, i), "diff", p.Clusters[i].Text())
	}
	return cmdutil.CleanLines(b.String())
}

// markdownName names an object in the files.
func markdownName(ref snapshot.Ref) string {
	return fmt.Sprintf("%s `%s/%s`", ref.Kind, ref.Namespace, ref.Name)
}

// markdownCalls is the table of calls.
func markdownCalls(b *strings.Builder, rows []explain.CallRow) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n| Calls | From | To |\n|---|---|---|\n")
	for i, row := range rows {
		if i == mostRows {
			fmt.Fprintf(b, "| %d more | | |\n", len(rows)-i)
			return
		}
		word := "gained"
		if row.Lost {
			word = ":warning: lost"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", word, escaped(names(row.From)), escaped(names(row.To)))
	}
}

func markdownIssues(b *strings.Builder, title string, list []snapshot.Issue) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", title)
	for _, issue := range list {
		fmt.Fprintf(b, "- **%s** %s\n", issue.Severity, escaped(issue.Summary()))
		if issue.Hint != "" {
			fmt.Fprintf(b, "  → %s\n", escaped(issue.Hint))
		}
	}
}

// markdownGraph draws who may call what.
func markdownGraph(b *strings.Builder, title string, graph *explain.Graph) {
	if len(graph.Edges) > 0 {
		markdownBlock(b, title, "mermaid", graph.Mermaid())
	}
}

// markdownBlock is a text that readers open.
func markdownBlock(b *strings.Builder, title, language, text string) {
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n%s%s\n%s%s\n\n</details>\n", escaped(title), fence, language, text, fence)
}

// escaped keeps strings of clusters from being read as Markdown or HTML.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "@", "@\u200b", "#", `\#`, "\n", " ").Replace(text)
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
