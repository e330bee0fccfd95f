package tui

import (
	"regexp"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// line is one line of a page that is read from top to bottom.
type line struct {
	text  string
	style lineStyle
	// ref is what the line is about; zero if nothing that can be opened.
	ref   snapshot.Ref
	level explain.Level
	// command is the command that the line is a part of; empty for other lines.
	command string
}

// lineStyle is how a line is shown.
type lineStyle uint8

const (
	stylePlain lineStyle = iota
	styleTitle
	styleHeader
	styleLevel
	styleDiffers
	styleAdded
	styleRemoved
)

func (l *line) render(t *Theme, current bool, from, width int, found *regexp.Regexp) string {
	text := l.text
	if from > 0 {
		text = cut(text, from)
	}
	opens := " "
	if l.ref != (snapshot.Ref{}) {
		opens = "›"
	}
	if current {
		return t.selected.Render(fit(">"+opens+text, width))
	}
	text = strings.TrimRight(fit(text, width-2), " ")
	style := t.plain
	switch l.style {
	case styleTitle, styleHeader:
		style = t.title
	case styleLevel:
		style = t.levels[l.level]
	case styleDiffers:
		style = t.differs
	case styleAdded:
		style = t.added
	case styleRemoved:
		style = t.removed
	}
	if l.style != stylePlain || found != nil {
		text = paint(text, style, found, t.found)
	}
	if opens == " " {
		return "  " + text
	}
	return " " + t.accent.Render(opens) + text
}

// cut leaves out the first runes of a text.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

// pageLines lays an answer out: facts and tables in columns where they fit,
// and else each row as a small paragraph, so that nothing is cut off.
func pageLines(p explain.Page, width int) []line {
	var out []line
	for _, s := range p.Sections {
		out = append(out, sectionLines(s, width)...)
	}
	return append(out, issueLines(&p, width)...)
}

func sectionLines(s explain.Section, width int) []line {
	out := []line{}
	if s.Title != "" {
		out = append(out, line{}, line{text: snapshot.Clean(s.Title), style: styleTitle})
	}
	if s.Text != "" {
		for _, part := range wrap(snapshot.Clean(s.Text), width-2) {
			out = append(out, line{text: "  " + part})
		}
	}
	rows := make([][]string, len(s.Rows))
	columns := len(s.Header)
	for _, row := range s.Rows {
		columns = max(columns, len(row))
	}
	widths := make([]int, columns)
	for i, title := range s.Header {
		widths[i] = len(title)
	}
	for i, row := range s.Rows {
		rows[i] = make([]string, len(row))
		for j, cell := range row {
			if rows[i][j] = snapshot.Clean(cell); rows[i][j] == "" {
				rows[i][j] = "-"
			}
			widths[j] = max(widths[j], textWidth(rows[i][j]))
		}
	}
	total := 2
	for _, w := range widths {
		total += w + gap
	}
	switch {
	case len(s.Header) == 0:
		return append(out, factLines(rows, widths, width)...)
	case total-gap <= width:
		return append(out, tableLines(s, rows, widths)...)
	}
	return append(out, paragraphs(s, rows, width)...)
}

// factLines are names and values.
func factLines(rows [][]string, widths []int, width int) []line {
	var out []line
	for _, row := range rows {
		if len(row) < 2 {
			continue
		}
		for i, part := range wrap(row[1], width-widths[0]-4) {
			name := row[0]
			if i > 0 {
				name = ""
			}
			out = append(out, line{text: "  " + fit(name, widths[0]) + "  " + part})
		}
	}
	return out
}

func tableLines(s explain.Section, rows [][]string, widths []int) []line {
	spell := func(cells []string) string {
		var b strings.Builder
		b.WriteString("  ")
		for i, cell := range cells {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(fit(cell, widths[i]))
		}
		return strings.TrimRight(b.String(), " ")
	}
	out := []line{{text: spell(s.Header), style: styleHeader}}
	for i, row := range rows {
		out = append(out, line{text: spell(row), ref: refAt(s, i)})
	}
	return out
}

// shortCell is the width of cells too short for a line of their own, such as a number.
const shortCell = 3

// paragraphs are the rows of a table that is too wide: the first cell, and
// below it the others with their titles.
func paragraphs(s explain.Section, rows [][]string, width int) []line {
	var out []line
	for i, row := range rows {
		head, from := row[0], 1
		if textWidth(head) <= shortCell && head != " " && len(row) > 1 {
			head, from = strings.TrimPrefix(head+"  ", "-  ")+row[1], 2
		}
		if head != " " {
			out = append(out, line{text: "  " + fit(head, min(textWidth(head), width-2)), ref: refAt(s, i)})
		}
		text := ""
		for j := from; j < len(row); j++ {
			if row[j] != " " && row[j] != "-" {
				text += "  " + strings.ToLower(s.Header[j]) + " " + row[j]
			}
		}
		for k, part := range wrap(strings.TrimSpace(text), width-8) {
			l := line{text: "      " + strings.TrimSpace(part)}
			if k == 0 {
				l.text = "    · " + strings.TrimSpace(part)
				if head == " " {
					l.ref = refAt(s, i)
				}
			}
			if strings.TrimSpace(part) != "" {
				out = append(out, l)
			}
		}
	}
	return out
}

func refAt(s explain.Section, i int) snapshot.Ref {
	if i < len(s.Refs) {
		return s.Refs[i]
	}
	return snapshot.Ref{}
}

func issueLines(page *explain.Page, width int) []line {
	out := []line{{}, {text: "Issues", style: styleTitle}}
	if page.NotRead != "" {
		for _, part := range wrap(snapshot.Clean("Not read: "+page.NotRead), width-2) {
			out = append(out, line{text: "  " + part})
		}
	} else if len(page.Issues) == 0 {
		return append(out, line{text: "  None."})
	}
	for _, issue := range page.Issues {
		out = append(out, issueLine(issue, width)...)
	}
	return out
}

// issueLine is an issue, and below it the next step.
func issueLine(issue snapshot.Issue, width int) []line {
	var out []line
	level := explain.LevelOf(issue.Severity)
	text := issue.Severity.String() + "  " + issue.Summary()
	for i, part := range wrap(snapshot.Clean(text), width-6) {
		l := line{text: "    " + part, style: styleLevel, level: level}
		if i == 0 {
			l.text, l.ref = "  "+sign(level)+" "+part, issue.Ref
		}
		out = append(out, l)
	}
	if issue.Hint == "" {
		return out
	}
	for i, part := range wrap(snapshot.Clean(issue.Hint), width-8) {
		arrow := "    → "
		if i > 0 {
			arrow = "      "
		}
		out = append(out, line{text: arrow + part})
	}
	return out
}
