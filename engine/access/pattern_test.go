package access_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/access"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// samplePatterns are patterns of each shape that say different things about sampleTexts.
func samplePatterns() map[string]access.Pattern {
	out := map[string]access.Pattern{}
	for _, text := range []string{
		"*", "/*", "/a", "/a/b", "/a*", "/a/*", "/a/b*", "*b", "*/b", "*a/b", "*/a/b", "/a/{*}", "/a/{**}", "/{*}/b", "/{**}", "/{*}", "/a{*}", "/c", "/A", "/A*",
	} {
		out[text] = access.ParsePattern(text)
	}
	for _, text := range []string{"/", "/a", "/A/", "/a/b", "/b"} {
		for _, ignoreCase := range []bool{false, true} {
			for shape, m := range map[string]commonv1.StringMatch{
				"exact ": {Exact: text}, "prefix ": {Prefix: text}, "suffix ": {Suffix: text}, "regex ": {Regex: text + ".*"}, "regex end ": {Regex: ".*" + text},
			} {
				name := shape + text
				if m.IgnoreCase = ignoreCase; ignoreCase {
					name += " in any case"
				}
				out[name] = access.PatternOf(m)
			}
		}
	}
	out["regex of one"] = access.PatternOf(commonv1.StringMatch{Regex: "/[a-z]"})
	out["nothing said"] = access.PatternOf(commonv1.StringMatch{})
	return out
}

// sampleTexts are all paths of few characters.
func sampleTexts() []string {
	out := []string{"/"}
	for at := 0; at < len(out); at++ {
		if len(out[at]) < 5 {
			for _, c := range []string{"/", "a", "b", "A"} {
				out = append(out, out[at]+c)
			}
		}
	}
	return out
}

// TestPatternsAgree ties the three questions together: what a pattern contains it matches, and
// patterns that match the same text overlap.
func TestPatternsAgree(t *testing.T) {
	t.Parallel()
	patterns, texts := samplePatterns(), sampleTexts()
	matched := map[string][]bool{}
	for name, p := range patterns {
		for _, text := range texts {
			matched[name] = append(matched[name], p.Matches(text))
		}
	}
	contained, apart := 0, 0
	for a, wide := range patterns {
		for b, narrow := range patterns {
			contains, overlaps := wide.Contains(narrow), wide.Overlaps(narrow)
			require.Equal(t, overlaps, narrow.Overlaps(wide), "%s and %s", a, b)
			for i, text := range texts {
				if contains && matched[b][i] {
					require.True(t, matched[a][i], "%s contains %s, and does not match %s", a, b, text)
				}
				if matched[a][i] && matched[b][i] {
					require.True(t, overlaps, "%s and %s do not overlap, and match %s", a, b, text)
				}
			}
			if contains && a != b {
				contained++
			}
			if !overlaps {
				apart++
			}
		}
	}
	assert.Greater(t, contained, 300)
	assert.Greater(t, apart, 300)
}

// TestPatternsApart have no text in common, and the answer is certain.
func TestPatternsApart(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"/a", "/b"}, {"/a*", "/b*"}, {"/a", "/b*"}, {"/a", "*b"}, {"*a", "*b"}, {"/a/{*}", "/b/*"}, {"/a/{*}", "/b"}, {"/a/{*}", "/b/{*}"}} {
		a, b := access.ParsePattern(pair[0]), access.ParsePattern(pair[1])
		assert.False(t, a.Overlaps(b), pair)
		assert.False(t, b.Overlaps(a), pair)
	}
}

// TestPatternContains: a pattern has all texts of another one, and says so where it is sure.
func TestPatternContains(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wide, narrow string
		want         bool
	}{
		"any, any":              {"*", "*", true},
		"any, template":         {"*", "/{*}", true},
		"beginning, any":        {"/*", "*", false},
		"beginning, longer":     {"/a*", "/ab*", true},
		"beginning, shorter":    {"/ab*", "/a*", false},
		"beginning, exact":      {"/a*", "/a", true},
		"beginning, template":   {"/a/*", "/a/{*}/b", true},
		"beginning, an ending":  {"/a*", "*/a", false},
		"ending, longer":        {"*/b", "*/a/b", true},
		"ending, exact":         {"*/b", "/a/b", true},
		"ending, template":      {"*/b", "/{*}/b", false},
		"template, the same":    {"/a/{*}", "/a/{*}", true},
		"template, one of them": {"/a/{*}", "/a/b", false},
		"exact, a beginning":    {"/a", "/a*", false},
	} {
		assert.Equal(t, tt.want, access.ParsePattern(tt.wide).Contains(access.ParsePattern(tt.narrow)), name)
	}
}

// FuzzPatterns ties the three questions together for any patterns and texts.
func FuzzPatterns(f *testing.F) {
	for _, text := range []string{"/a", "/a*", "*a", "/a/{*}", "/{**}", "(?i)/a.*", "/É"} {
		f.Add(text, "/a/b*", "/a/b", uint8(5))
	}
	f.Fuzz(func(t *testing.T, a, b, text string, shapes uint8) {
		if a == "" || b == "" || text == "" || !utf8.ValidString(a+b+text) || strings.ContainsAny(text, "\n") {
			return // the API server refuses such patterns, and proxies such paths
		}
		read := func(text string, shape uint8) access.Pattern {
			ignoreCase := shape&4 != 0
			switch shape & 3 {
			case 1:
				return access.PatternOf(commonv1.StringMatch{Exact: text, IgnoreCase: ignoreCase})
			case 2:
				return access.PatternOf(commonv1.StringMatch{Prefix: text, IgnoreCase: ignoreCase})
			case 3:
				if ignoreCase {
					return access.PatternOf(commonv1.StringMatch{Regex: text})
				}
				return access.PatternOf(commonv1.StringMatch{Suffix: text})
			}
			return access.ParsePattern(text)
		}
		p, q := read(a, shapes), read(b, shapes>>3)
		if p.Contains(q) && q.Matches(text) && !p.Matches(text) {
			t.Errorf("%+v contains %+v, and does not match %q", p, q, text)
		}
		if p.Matches(text) && q.Matches(text) && !p.Overlaps(q) {
			t.Errorf("%+v and %+v do not overlap, and match %q", p, q, text)
		}
	})
}
