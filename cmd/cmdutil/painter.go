package cmdutil

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Painter is how text is painted for people: on a terminal it is wrapped between words and severities
// have colours, elsewhere neither unless the user asks for colours.
type Painter struct {
	// Width is where lines are wrapped; 0 does not wrap.
	Width int
	// Colour is true if colours may be used. They repeat what words say.
	Colour bool
}

// OutPainter paints for the output.
func (s *Streams) OutPainter() Painter {
	if !s.OutTTY {
		return Painter{Colour: s.Colour}
	}
	return Painter{Width: s.Width, Colour: s.Colour}
}

// ErrPainter paints for the error stream.
func (s *Streams) ErrPainter() Painter {
	if !s.ErrTTY {
		return Painter{Colour: s.ErrColour}
	}
	return Painter{Width: s.ErrWidth, Colour: s.ErrColour}
}

// hues are the terminal's own colours of words that say how something is.
var hues = map[string]ansi.BasicColor{
	"Error:": ansi.Red, "error": ansi.Red, "failure": ansi.Red, "fail": ansi.Red, "failed": ansi.Red,
	"warning": ansi.Yellow, "info": ansi.Cyan, "ok": ansi.Green,
}

// Severity colours a word such as error or warning. Blanks around it stay.
func (p Painter) Severity(word string) string {
	hue, known := hues[strings.TrimSpace(word)]
	if !p.Colour || !known {
		return word
	}
	return ansi.NewStyle().ForegroundColor(hue).Styled(word)
}

// Paragraph writes a text between words: first goes before its first line, and rest before the others.
// A word that is longer than a line stays whole, so that it can be copied.
func (p Painter) Paragraph(b *strings.Builder, first, rest, text string) {
	if p.Width <= 0 || ansi.StringWidth(first)+ansi.StringWidth(text) <= p.Width {
		b.WriteString(first + text + "\n")
		return
	}
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case ansi.StringWidth(line)+1+ansi.StringWidth(word) > p.Width:
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = rest + word
		default:
			line += " " + word
		}
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// Lines writes the lines of a text, each as a paragraph that keeps its indent; first goes before all of them.
func (p Painter) Lines(b *strings.Builder, first, text string) {
	for i, line := range strings.Split(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if i > 0 {
			first = ""
		}
		p.Paragraph(b, first+indent, indent, strings.TrimLeft(line, " "))
	}
}
