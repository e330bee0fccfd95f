package cmdutil

import (
	"io"
	"os"
	"strings"
)

// Style is how words for people look.
type Style uint8

const (
	// Drawn words may have marks and lines of Unicode, and may move on a terminal.
	Drawn Style = iota
	// Still words stay where they are, and their marks are ASCII.
	Still
)

// styleOf is the style that an environment asks for: Still if the terminal cannot move its cursor, if a screen
// reader may read, or if a locale is set that is not UTF-8. Where none is set, as in many containers, nothing is
// known about the terminal, and most are UTF-8.
func styleOf(getenv func(string) string) Style {
	if IsPlain(getenv) {
		return Still
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // POSIX: the first that is set decides
		if locale := strings.ToUpper(getenv(name)); locale != "" {
			if strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8") {
				return Drawn
			}
			return Still
		}
	}
	return Drawn
}

// IsPlain reports whether an environment asks for text line by line: the terminal cannot move its cursor, or a
// screen reader may read.
func IsPlain(getenv func(string) string) bool {
	return getenv("ACCESSIBLE") != "" || getenv("TERM") == "dumb"
}

// isColoured reports whether output may have colours. NO_COLOR has the last word (https://no-color.org: any
// non-empty value); CLICOLOR_FORCE asks for them also where no terminal is (https://bixense.com/clicolors).
func isColoured(getenv func(string) string, tty bool) bool {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return tty && getenv("TERM") != "dumb" && getenv("CLICOLOR") != "0"
}

// asciiMarks has for each mark that meshctl prints one in ASCII, of the same width, so that columns stay.
var asciiMarks = strings.NewReplacer(
	"✓", "+", "✗", "x", "→", ">", "←", "<", "↑", "^", "↓", "v", "›", ">", "▶", ">", "▲", "^", "▼", "v", "•", "*", "·", "-", "…", "~",
	"─", "-", "│", "|", "┌", "+", "┐", "+", "└", "+", "┘", "+", "├", "+", "┤", "+", "┬", "+", "┴", "+", "┼", "+", "µ", "u", "Δ", "d",
	"▁", "1", "▂", "2", "▃", "3", "▄", "4", "▅", "5", "▆", "6", "▇", "7", "█", "8",
)

// asciiWriter writes words with marks in ASCII. Other characters are part of what users wrote, and stay.
type asciiWriter struct{ io.Writer }

// Write is part of io.Writer.
func (w asciiWriter) Write(p []byte) (int, error) {
	if _, err := asciiMarks.WriteString(w.Writer, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// stillWords is a file of which everything is words for people.
type stillWords struct{ *os.File }

// Write is part of io.Writer.
func (f stillWords) Write(p []byte) (int, error) { return asciiWriter{f.File}.Write(p) }

// WriteString is part of io.StringWriter.
func (f stillWords) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// stillOutput is a file that takes data as they are, and words by way of words.
type stillOutput struct{ *os.File }

// words is where to write what is meant for people to an output.
func words(out io.Writer) io.Writer {
	if f, ok := out.(stillOutput); ok {
		return asciiWriter{f.File}
	}
	return out
}
