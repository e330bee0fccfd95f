package cmdutil

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/meshctl/meshctl/engine/explain"
)

// PrintPage paints a page: what makes it uncertain, its title, each section, the issues last, where the
// eye of a reader in a hurry ends up.
func PrintPage(out io.Writer, p Painter, page explain.Page) error {
	var b strings.Builder
	if page.NotRead != "" {
		p.Paragraph(&b, "", "  ", NotCertain(page.NotRead))
	}
	p.Paragraph(&b, "", "  ", Clean(page.Title))
	for _, s := range page.Sections {
		if err := p.section(&b, s); err != nil {
			return err
		}
	}
	count := "none"
	if len(page.Issues) > 0 {
		count = explain.Count(page.Issues).String()
	}
	if page.NotRead != "" {
		count += ", as far as was read"
	}
	fmt.Fprintf(&b, "\nIssues: %s\n", count)
	if err := PrintIssues(&b, p, "  ", page.Issues); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// NotCertain is the first line of an answer that does not follow from all that may decide: not is what Index.NotRead says.
func NotCertain(not string) string { return "Answer not certain: " + Clean(not) }

func (p Painter) section(b *strings.Builder, s explain.Section) error {
	if s.Title != "" {
		b.WriteByte('\n')
		p.Paragraph(b, "", "  ", Clean(s.Title))
	}
	if s.Text != "" {
		p.Paragraph(b, "  ", "  ", Clean(s.Text))
	}
	table := Table{Header: s.Header, Rows: s.Rows, Indent: "  "}
	var text strings.Builder
	if err := table.Print(&text); err != nil {
		return err
	}
	switch {
	case p.fits(text.String()):
		b.WriteString(text.String())
	case len(s.Header) == 0:
		p.facts(b, s.Rows)
	default:
		p.paragraphs(b, s)
	}
	return nil
}

func (p Painter) fits(text string) bool {
	if p.Width <= 0 {
		return true
	}
	for line := range strings.Lines(text) {
		if ansi.StringWidth(strings.TrimSuffix(line, "\n")) > p.Width {
			return false
		}
	}
	return true
}

// facts are names and values, the values wrapped.
func (p Painter) facts(b *strings.Builder, rows [][]string) {
	longest := 0
	for _, row := range rows {
		longest = max(longest, ansi.StringWidth(Clean(row[0])))
	}
	for _, row := range rows {
		name := Clean(row[0])
		first := "  " + name + strings.Repeat(" ", longest-ansi.StringWidth(name)+TableGap)
		p.Paragraph(b, first, strings.Repeat(" ", longest+2+TableGap), cell(row[len(row)-1]))
	}
}

// paragraphs are the rows of a table that is too wide: the first cell, and below it the others with
// their titles. Cells without a value are left out.
func (p Painter) paragraphs(b *strings.Builder, s explain.Section) {
	for _, row := range s.Rows {
		head, from := cell(row[0]), 1
		if len(row) > 1 && strings.Trim(head, "-0123456789") == "" { // the number of a row is no head
			head, from = strings.TrimPrefix(head+"  ", "-  ")+cell(row[1]), 2
		}
		if head != " " {
			p.Paragraph(b, "  ", "    ", head)
		}
		var parts []string
		for j := from; j < len(row) && j < len(s.Header); j++ {
			if text := cell(row[j]); text != " " && text != "-" {
				parts = append(parts, strings.ToLower(s.Header[j])+" "+text)
			}
		}
		if len(parts) > 0 {
			p.Paragraph(b, "    · ", "      ", strings.Join(parts, "; "))
		}
	}
}
