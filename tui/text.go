package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// displayWidth is how many columns of the screen a painted text takes.
func displayWidth(s string) int { return ansi.StringWidth(s) }

// fit makes a clean text exactly so wide: cut with an ellipsis, or padded.
func fit(s string, to int) string {
	if to <= 0 {
		return ""
	}
	switch w := textWidth(s); {
	case w == to:
		return s
	case w < to:
		return s + spaces(to-w)
	case len(s) == w:
		return s[:to-1] + "…"
	}
	s = ansi.Truncate(s, to, "…")
	return s + spaces(to-textWidth(s))
}

// fitName is fit for names, which are cut in the middle: their ends tell them apart.
func fitName(s string, to int) string {
	w := textWidth(s)
	if w <= to || to < 3 {
		return fit(s, to)
	}
	tail := (to - 1) / 2
	short := ansi.Truncate(s, to-1-tail, "") + "…" + ansi.TruncateLeft(s, w-tail, "")
	return short + spaces(to-textWidth(short)) // wide characters may leave a gap
}

// fitRight is fit for numbers.
func fitRight(s string, to int) string {
	if w := textWidth(s); w < to {
		return spaces(to-w) + s
	}
	return fit(s, to)
}

// blank is cut for padding, which makes no garbage.
const blank = "                                                                                                                                "

func spaces(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(blank) {
		return blank[:n]
	}
	return strings.Repeat(" ", n)
}

// wrap breaks a clean text into lines between words; words that are longer than
// a line are broken anywhere.
func wrap(s string, to int) []string {
	to = max(to, 1)
	if textWidth(s) <= to {
		return []string{s}
	}
	var lines []string
	rest := ""
	for _, word := range strings.Split(s, " ") {
		switch {
		case rest != "" && textWidth(rest)+1+textWidth(word) <= to:
			rest += " " + word
			continue
		case rest != "":
			lines = append(lines, strings.TrimRight(rest, " "))
		}
		for textWidth(word) > to {
			head := ansi.Truncate(word, to, "")
			if head == "" {
				break
			}
			lines, word = append(lines, head), word[len(head):]
		}
		rest = word
	}
	return append(lines, rest)
}
