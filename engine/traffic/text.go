package traffic

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a text, as what a proxy answers is not trusted: of one line and of one label in bytes, and how many labels a line may have.
const (
	maxLine   = 16 << 10
	maxText   = 512
	maxLabels = 40
)

// maxCount is the largest number that is taken: up to it, a float has all integers.
const maxCount = 1 << 53

// sample is a line of a text in Prometheus' format. It is valid until the next line is read.
type sample struct {
	name   string
	labels []labelOf
	value  float64
}

type labelOf struct{ name, value string }

// label is the value of a label; empty if there is none.
func (s *sample) label(name string) string {
	for _, l := range s.labels {
		if l.name == name {
			return l.value
		}
	}
	return ""
}

// samples reads the lines of a text whose names are wanted, and returns how many of them it refused: what is no sample, is too long, has
// a number that is none, or a label with a character that is not printed. See
// https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details. The parser of prometheus/common is not used: it keeps
// all of a text, and gives all up for one bad line.
func samples(text []byte, wanted func(name []byte) bool, take func(*sample)) (refused int) {
	var s sample
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		end := bytes.IndexAny(line, "{ \t")
		if end <= 0 || line[0] == '#' || !wanted(line[:end]) {
			continue
		}
		if len(line) > maxLine || !s.parse(string(line), end) {
			refused++
			continue
		}
		take(&s)
	}
	return refused
}

// parse reads a line whose name has a length. What follows the value, a timestamp, is left out.
func (s *sample) parse(line string, name int) bool {
	s.name, s.labels = line[:name], s.labels[:0]
	rest := line[name:]
	if rest[0] == '{' {
		var ok bool
		if rest, ok = s.parseLabels(rest[1:]); !ok {
			return false
		}
	}
	value, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	n, err := strconv.ParseFloat(value, 64)
	s.value = n
	return err == nil && n >= 0 && n <= maxCount && !math.IsNaN(n)
}

// parseLabels reads labels up to the brace that ends them, and returns what follows.
func (s *sample) parseLabels(text string) (rest string, ok bool) {
	for {
		text = strings.TrimLeft(text, " ,")
		if after, ended := strings.CutPrefix(text, "}"); ended {
			return after, true
		}
		name, after, found := strings.Cut(text, `="`)
		if !found || len(s.labels) == maxLabels || len(name) > maxText {
			return "", false
		}
		value, left, closed := quoted(after)
		if !closed || !printed(value) {
			return "", false
		}
		s.labels = append(s.labels, labelOf{name, value})
		text = left
	}
}

// quoted reads a text up to its closing quote.
func quoted(text string) (value, rest string, ok bool) {
	end := strings.IndexAny(text, `"\`)
	if end >= 0 && text[end] == '"' {
		return text[:end], text[end+1:], true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(text):
			return "", "", false
		default:
			if i++; text[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(text[i])
			}
		}
	}
	return "", "", false
}

// printed: a text is short, valid, and has no character that would do something to a terminal or a log.
func printed(text string) bool {
	return len(text) <= maxText && utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
