package tui

import (
	"strings"

	"github.com/sahilm/fuzzy"
	"k8s.io/apimachinery/pkg/labels"
)

// filterKind says how a filter reads its text.
type filterKind uint8

const (
	filterNone filterKind = iota
	filterText
	filterInverse
	filterLabels
	filterFuzzy
)

// filter keeps some rows.
type filter struct {
	kind filterKind
	// text is the filter as it was typed, without what chose its kind.
	text string
	// typed is all of it.
	typed string
}

// parseFilter reads what is typed after "/": text, !text, -l selector, -f letters.
func parseFilter(typed string) (filter, error) {
	typed = strings.TrimSpace(typed)
	f := filter{kind: filterText, text: typed, typed: typed}
	switch {
	case typed == "":
		return filter{}, nil
	case strings.HasPrefix(typed, "!"):
		f.kind, f.text = filterInverse, typed[1:]
	case strings.HasPrefix(typed, "-l"):
		f.kind, f.text = filterLabels, strings.TrimSpace(typed[2:])
		if _, err := labels.Parse(f.text); err != nil {
			return filter{}, err //nolint:wrapcheck // it quotes the selector and says where it breaks
		}
	case strings.HasPrefix(typed, "-f"):
		f.kind, f.text = filterFuzzy, strings.TrimSpace(typed[2:])
	}
	if f.text == "" {
		return filter{}, nil
	}
	return f, nil
}

// matcher returns a function that reports whether a row of the grid is kept.
func (f filter) matcher(g *grid) func(int) bool {
	switch f.kind {
	case filterText, filterInverse:
		pattern := compilePattern(f.text)
		return func(i int) bool { return pattern.MatchString(g.rows[i].text) == (f.kind == filterText) }
	case filterLabels:
		selector, err := labels.Parse(f.text)
		if err != nil {
			selector = labels.Nothing()
		}
		return func(i int) bool { return selector.Matches(labels.Set(g.rows[i].Labels)) }
	case filterFuzzy:
		found := map[int]bool{}
		for _, m := range fuzzy.FindFrom(strings.ToLower(f.text), fuzzySource{g}) {
			found[m.Index] = true
		}
		return func(i int) bool { return found[i] }
	}
	return func(int) bool { return true }
}

// fuzzySource has the text of each row for package fuzzy.
type fuzzySource struct{ g *grid }

// Len implements fuzzy.Source.
func (s fuzzySource) Len() int { return len(s.g.rows) }

// String implements fuzzy.Source.
func (s fuzzySource) String(i int) string { return s.g.rows[i].text }
