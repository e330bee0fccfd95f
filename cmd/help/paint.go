package help

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// widest is where text is wrapped even if the terminal is wider: long lines
// are hard to read.
const widest = 100

// print prints the topic, or its rows that contain all words.
func (t *topic) print(s *cmdutil.Streams, words []string, format cmdutil.Format) error {
	var found []section
	if t.sections != nil {
		found = matching(t.sections(), words)
	}
	if len(words) > 0 && len(found) == 0 {
		return cmdutil.NotFoundErrorf("help topic %s: no row contains %q; print all rows with: meshctl help %s", t.name, strings.Join(words, " "), t.name)
	}
	var b strings.Builder
	if format == formatMarkdown {
		t.markdown(&b, found)
	} else {
		t.text(&b, found, len(words) > 0, min(max(s.Width, 40), widest))
	}
	_, err := io.WriteString(s.Out, b.String())
	return err
}

// text paints for a terminal: each row as a paragraph, because its cells are too
// long for columns. A search leaves out the words around the rows.
func (t *topic) text(b *strings.Builder, sections []section, searched bool, width int) {
	if !searched {
		b.WriteString(t.intro + "\n\n")
	}
	painter := cmdutil.Painter{Width: width}
	for i, s := range sections {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "%s\n", s.title)
		for _, r := range s.rows {
			painter.Paragraph(b, "  ", "  ", plain(r.about))
			labels, cells := merged(t.header[1:], r.cells)
			longest := 0
			for _, label := range labels {
				longest = max(longest, len(label))
			}
			for i, label := range labels {
				if cells[i] == "" {
					continue // it has no such thing
				}
				painter.Paragraph(b, fmt.Sprintf("      %-*s  ", longest, label), strings.Repeat(" ", longest+8), plain(cells[i]))
			}
		}
	}
	if !searched && len(sections) > 0 {
		fmt.Fprintf(b, "\nTo search:   meshctl help %s WORD...\nAs Markdown: meshctl help %s -o markdown\n", t.name, t.name)
	}
}

// merged joins the labels of equal cells.
func merged(labels, cells []string) ([]string, []string) {
	if len(slices.Compact(slices.Clone(cells))) == 1 {
		return []string{strings.Join(labels, ", ")}, cells[:1]
	}
	return labels, cells
}

// plain is a text without marks for Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// markdown paints a table for each section.
func (t *topic) markdown(b *strings.Builder, sections []section) {
	fmt.Fprintf(b, "# %s\n\n", t.short)
	if t.intro != "" {
		b.WriteString(markdownText(t.intro) + "\n")
	}
	for _, s := range sections {
		fmt.Fprintf(b, "\n## %s\n\n| %s |\n|%s\n", s.title, strings.Join(t.header, " | "), strings.Repeat("---|", len(t.header)))
		for _, r := range s.rows {
			cells := append([]string{r.about}, r.cells...)
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
}

// markdownText turns indented lines into code, as they are aligned.
func markdownText(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			line = "    " + strings.TrimPrefix(line, "  ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
