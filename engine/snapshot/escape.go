package snapshot

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v3"
)

// Unprintable reports runes that act on a terminal, or do not show: control characters, format
// characters (which turn the direction of writing, join, or have no width), and separators of lines
// and paragraphs; the categories Cc, Cf, Zl and Zp of Unicode.
func Unprintable(r rune) bool {
	if r < unicode.MaxASCII {
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// acts leaves out line ends, which have their place in text.
func acts(r rune) bool { return r != '\n' && Unprintable(r) }

// EscapeJSON writes the unprintable characters that encoding/json lets through
// as \u escapes; line ends stay. In JSON the others stand in strings only.
func EscapeJSON(data []byte) []byte {
	return escape(data, func(out []byte, r rune) []byte {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Appendf(out, "\\u%04x\\u%04x", high, low)
		}
		return fmt.Appendf(out, "\\u%04x", r)
	})
}

// escapeYAML is EscapeJSON for strings of YAML in double quotes, which has no surrogates.
func escapeYAML(data []byte) []byte {
	return escape(data, func(out []byte, r rune) []byte { return fmt.Appendf(out, "\\U%08x", r) })
}

func escape(data []byte, as func([]byte, rune) []byte) []byte {
	if !bytes.ContainsFunc(data, acts) {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if acts(r) {
			out = as(out, r)
		} else {
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return out
}

// escapedYAML writes JSON as YAML, in which strings with unprintable characters are in double quotes,
// and these are escapes.
func escapedYAML(data []byte) ([]byte, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal(escapeYAML(data), &document); err != nil { // JSON is YAML
		return nil, err
	}
	restyle(&document)
	var out bytes.Buffer
	encoder := goyaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return escapeYAML(out.Bytes()), nil
}

// restyle turns the style of JSON into that of YAML, with ascending keys.
func restyle(n *goyaml.Node) {
	switch {
	case n.Kind != goyaml.ScalarNode || strings.IndexFunc(n.Value, acts) < 0:
		n.Style = 0
	default:
		n.Style = goyaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		restyle(child)
	}
	if n.Kind == goyaml.MappingNode {
		pairs := slices.Collect(slices.Chunk(n.Content, 2))
		slices.SortStableFunc(pairs, func(a, b []*goyaml.Node) int { return strings.Compare(a[0].Value, b[0].Value) })
		n.Content = slices.Concat(pairs...)
	}
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
