package access

import (
	"regexp"
	"regexp/syntax"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// Pattern is a set of texts: paths, methods, or values of headers. No text is empty. The zero
// Pattern has all texts.
type Pattern struct {
	shape shape
	// text is in lower case if foldCase is set.
	text string
	// foldCase is never set for a regular expression or a template.
	foldCase bool
}

// shape is what a Pattern says about a text.
type shape uint8

const (
	anything shape = iota
	exact
	prefix
	suffix
	// expression is a regular expression (RE2) for the whole text.
	expression
	// template is a path with operators: {*} is one segment, and {**} is any number of them.
	template
)

// ParsePattern reads a path or a method of an AuthorizationPolicy: exact, with an asterisk for any
// beginning or any ending, or a path template (istio.io: AuthorizationPolicy, Rule and
// Operation.paths).
func ParsePattern(text string) Pattern {
	switch {
	case text == "*":
		return Pattern{}
	case strings.Contains(text, "{"):
		return Pattern{shape: template, text: text}
	case strings.HasPrefix(text, "*"):
		return Pattern{shape: suffix, text: text[1:]}
	case strings.HasSuffix(text, "*"):
		return Pattern{shape: prefix, text: text[:len(text)-1]}
	}
	return Pattern{shape: exact, text: text}
}

// PatternOf reads a StringMatch. A regular expression is never blind to case.
func PatternOf(m commonv1.StringMatch) Pattern {
	out := Pattern{}
	switch {
	case m.Regex != "":
		return Pattern{shape: expression, text: m.Regex}
	case m.Exact != "":
		out = Pattern{shape: exact, text: m.Exact}
	case m.Prefix != "":
		out = Pattern{shape: prefix, text: m.Prefix}
	case m.Suffix != "":
		out = Pattern{shape: suffix, text: m.Suffix}
	default:
		return out
	}
	if m.IgnoreCase {
		out = out.lower()
		out.foldCase = true
	}
	return out
}

// pathPattern reads the path of an HttpMatcher; nil stands for any path. Every path begins with a
// slash, so that the prefix / is any path, too.
func pathPattern(m *commonv1.StringMatch) Pattern {
	if m == nil {
		return Pattern{}
	}
	p := PatternOf(*m)
	if p.shape == expression {
		p = simplified(p)
	}
	if p.shape == prefix && p.text == "/" {
		return Pattern{}
	}
	return p
}

// simplified recognizes regular expressions that mean a prefix, a suffix, or anything.
func simplified(p Pattern) Pattern {
	re, err := syntax.Parse(p.text, syntax.Perl)
	if err != nil {
		return p
	}
	all := func(r *syntax.Regexp) bool {
		return r.Op == syntax.OpStar && (r.Sub[0].Op == syntax.OpAnyChar || r.Sub[0].Op == syntax.OpAnyCharNotNL)
	}
	literal := func(r *syntax.Regexp) bool { return r.Op == syntax.OpLiteral && r.Flags&syntax.FoldCase == 0 }
	switch {
	case all(re):
		return Pattern{}
	case re.Op != syntax.OpConcat || len(re.Sub) != 2:
		return p
	case literal(re.Sub[0]) && all(re.Sub[1]):
		return Pattern{shape: prefix, text: string(re.Sub[0].Rune)}
	case all(re.Sub[0]) && literal(re.Sub[1]):
		return Pattern{shape: suffix, text: string(re.Sub[1].Rune)}
	}
	return p
}

// Matches reports whether a text is in the pattern.
func (p Pattern) Matches(text string) bool {
	if p.foldCase {
		text = strings.ToLower(text)
	}
	switch p.shape {
	case exact:
		return text == p.text
	case prefix:
		return strings.HasPrefix(text, p.text)
	case suffix:
		return strings.HasSuffix(text, p.text)
	case expression:
		return matchesAll(p.text, text)
	case template:
		all := regexp.QuoteMeta(p.text)
		all = strings.ReplaceAll(all, regexp.QuoteMeta("{**}"), "[^?#]*")
		return matchesAll(strings.ReplaceAll(all, regexp.QuoteMeta("{*}"), "[^/]+"), text)
	}
	return true
}

// matchesAll reports whether all of a text matches; an expression that cannot be compiled was
// refused, and matches nothing.
func matchesAll(expression, text string) bool {
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && compiled.MatchString(text)
}

// Contains reports whether every text that is in another pattern is certainly in this one.
func (p Pattern) Contains(other Pattern) bool {
	switch {
	case p.shape == anything || p == other:
		return true
	case p.foldCase:
		other = other.lower()
	case other.foldCase:
		return false
	}
	switch p.shape {
	case exact:
		return other.shape == exact && other.text == p.text
	case prefix:
		return strings.HasPrefix(other.head(), p.text)
	case suffix:
		return (other.shape == exact || other.shape == suffix) && strings.HasSuffix(other.text, p.text)
	}
	return false
}

// Overlaps reports whether a text may be in both of two patterns.
func (p Pattern) Overlaps(other Pattern) bool {
	if p.foldCase || other.foldCase {
		p, other = p.lower(), other.lower()
	}
	a, b := p.head(), other.head()
	switch {
	case p.Contains(other) || other.Contains(p):
		return true
	case !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a):
		return false // their texts begin differently
	case p.shape == suffix && other.shape == suffix:
		return false
	}
	return !(p.shape == exact && other.isPlain() || other.shape == exact && p.isPlain())
}

// isPlain reports whether Contains knows of every exact pattern if it is in this one.
func (p Pattern) isPlain() bool { return p.shape != expression && p.shape != template }

// head is how each text of the pattern begins.
func (p Pattern) head() string {
	switch p.shape {
	case exact, prefix:
		return p.text
	case template:
		before, _, _ := strings.Cut(p.text, "{")
		return before
	}
	return ""
}

// lower is a pattern that has each text of the pattern in lower case.
func (p Pattern) lower() Pattern {
	if p.shape != expression {
		p.text = strings.ToLower(p.text)
	}
	p.foldCase = false
	return p
}
