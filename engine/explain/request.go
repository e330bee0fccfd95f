package explain

import (
	"regexp"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Request is an HTTP or gRPC request.
type Request struct {
	// Method is in upper case; empty means GET.
	Method string `json:"method"`
	// Path may have a query, as in /reviews/1?lang=en; empty means /.
	Path string `json:"path"`
	// Headers are what the caller sends besides, with names in lower case, each once: Envoy before
	// 1.39 compares several values of one as if they were one with commas, and later each by itself.
	Headers map[string]string `json:"headers,omitempty"`
	// Port is one of the service; 0 is its first one for HTTP, or else its first one.
	Port uint32 `json:"port"`
}

// complete sets what is empty.
func (r Request) complete() Request {
	if r.Method == "" {
		r.Method = "GET"
	}
	if r.Path == "" {
		r.Path = "/"
	}
	return r
}

// path is Path without its query.
func (r Request) path() string {
	path, _, _ := strings.Cut(r.Path, "?")
	return path
}

// matches reports whether a proxy takes the request for one that matches (istio.io:
// HTTPMatchRequest). Who sends it is for takes.
func (r Request) matches(m *networkingv1.HttpMatcher) bool {
	if m == nil {
		return true
	}
	if m.Method != "" && m.Method != r.Method || m.Uri != nil && !matchesString(*m.Uri, r.path()) {
		return false
	}
	for _, h := range m.Headers {
		if r.hasHeader(h) == h.InvertMatch {
			return false
		}
	}
	return !slices.ContainsFunc(m.QueryParameters, func(q networkingv1.QueryParameterMatcher) bool {
		value, found := r.queryParameter(q.Name)
		return !found || q.Value != "" && !matchesValue(q.Value, q.Regex, value)
	})
}

// queryParameter is the first value of a parameter, as it is in the path: proxies decode nothing
// (Envoy: RouteMatch.query_parameters).
func (r Request) queryParameter(name string) (value string, found bool) {
	_, query, _ := strings.Cut(r.Path, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// hasHeader reports whether the request has the header, leaving InvertMatch aside.
func (r Request) hasHeader(h networkingv1.HeaderMatcher) bool {
	value, found := r.Headers[strings.ToLower(h.Name)]
	if h.Value == "" {
		return found
	}
	// What must not be there is also compared with a header that is missing: as if it were empty.
	return (found || h.InvertMatch) && matchesValue(h.Value, h.Regex, value)
}

func matchesValue(want string, isRegex bool, have string) bool {
	if isRegex {
		return matchesRegex(want, have)
	}
	return want == have
}

func matchesString(m commonv1.StringMatch, text string) bool {
	if m.Regex != "" {
		return matchesRegex(m.Regex, text)
	}
	if m.IgnoreCase {
		m.Exact, m.Prefix, m.Suffix, text = strings.ToLower(m.Exact), strings.ToLower(m.Prefix), strings.ToLower(m.Suffix), strings.ToLower(text)
	}
	switch {
	case m.Exact != "":
		return text == m.Exact
	case m.Prefix != "":
		return strings.HasPrefix(text, m.Prefix)
	default:
		return strings.HasSuffix(text, m.Suffix)
	}
}

// matchesRegex reports whether all of a text matches; what cannot be compiled was refused.
func matchesRegex(expression, text string) bool {
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && compiled.MatchString(text)
}

// Obstacle is a condition of a policy that a request does not fulfil.
type Obstacle string

// The obstacles, in the order in which they are told.
const (
	WrongCaller Obstacle = "caller"
	WrongMethod Obstacle = "method"
	WrongPath   Obstacle = "path"
	WrongPort   Obstacle = "port"
)

// obstacles are those of the conditions of a rule on requests.
func (r Request) obstacles(rule *snapshot.EffectiveRule, podPort uint32, http bool) (out []Obstacle) {
	// A proxy that sees connections only never finds a method or a path.
	if len(rule.Methods) > 0 && (!http || !slices.ContainsFunc(rule.Methods, func(m string) bool { return matchesPattern(m, r.Method) })) {
		out = append(out, WrongMethod)
	}
	if len(rule.Paths) > 0 && (!http || !slices.ContainsFunc(rule.Paths, func(p string) bool { return matchesPath(p, r.path()) })) {
		out = append(out, WrongPath)
	}
	if len(rule.PodPorts) > 0 && !slices.Contains(rule.PodPorts, podPort) {
		out = append(out, WrongPort)
	}
	return out
}

// matchesPattern is how Istio compares with what an AuthorizationPolicy names: exactly, or by
// the beginning or the end where there is an asterisk (istio.io: AuthorizationPolicy, Rule).
func matchesPattern(pattern, text string) bool {
	switch {
	case pattern == "*":
		return text != ""
	case strings.HasPrefix(pattern, "*"):
		return strings.HasSuffix(text, pattern[1:])
	case strings.HasSuffix(pattern, "*"):
		return strings.HasPrefix(text, pattern[:len(pattern)-1])
	}
	return pattern == text
}

// matchesPath also knows the templates of paths (istio.io: AuthorizationPolicy, Operation.paths):
// {*} is a part between slashes, and {**} is any number of them.
func matchesPath(pattern, path string) bool {
	if !strings.ContainsAny(pattern, "{}") {
		return matchesPattern(pattern, path)
	}
	expression := regexp.QuoteMeta(pattern)
	expression = strings.ReplaceAll(expression, regexp.QuoteMeta("{**}"), "[^?#]*")
	expression = strings.ReplaceAll(expression, regexp.QuoteMeta("{*}"), "[^/]+")
	return matchesRegex(expression, path)
}
