package snapshot

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Unprintable reports runes that act on a terminal instead of showing: control
// characters (C0, delete, C1) and those that turn the direction of writing.
func Unprintable(r rune) bool {
	return r < 0x20 || (r >= 0x7f && r < 0xa0) ||
		(r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) || r == 0x200e || r == 0x200f
}

// EscapeJSON writes the unprintable characters that encoding/json lets through
// as \u escapes; line ends stay. In JSON the others stand in strings only.
func EscapeJSON(data []byte) []byte {
	acts := func(r rune) bool { return r != '\n' && Unprintable(r) }
	if !bytes.ContainsFunc(data, acts) {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if acts(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return out
}

// Clean makes a string from a cluster safe to paint: control characters (which
// could move the cursor, hide text or fake a line) become "?", line ends and
// tabs become spaces.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case Unprintable(r):
			return '?'
		}
		return r
	}, s)
}
