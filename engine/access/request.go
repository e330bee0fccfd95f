package access

import (
	"slices"
	"strings"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Request is what proxies compare of an HTTP or gRPC request.
type Request struct {
	// Method is in upper case.
	Method string
	// Path begins with a slash, and may have a query.
	Path string
	// Headers have names in lower case.
	Headers map[string]string
}

// PathOnly is Path without its query.
func (r Request) PathOnly() string {
	path, _, _ := strings.Cut(r.Path, "?")
	return path
}

// Matches reports whether a proxy takes the request for one that matches, whoever sends it
// (istio.io: HTTPMatchRequest). No matcher takes all.
func (r Request) Matches(m *networkingv1.HttpMatcher) bool {
	if m == nil {
		return true
	}
	if m.Method != "" && m.Method != r.Method || !pathPattern(m.Uri).Matches(r.PathOnly()) {
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
		return matchesAll(want, have)
	}
	return want == have
}

// MatcherContains reports whether a matcher certainly takes every request that another one takes.
func MatcherContains(wide, narrow *networkingv1.HttpMatcher) bool {
	if wide == nil {
		return true
	}
	if narrow == nil {
		narrow = &networkingv1.HttpMatcher{}
	}
	return (wide.Method == "" || wide.Method == narrow.Method) && pathPattern(wide.Uri).Contains(pathPattern(narrow.Uri)) &&
		headersContain(wide.Headers, narrow.Headers) && queryContains(wide.QueryParameters, narrow.QueryParameters)
}

func headersContain(wide, narrow []networkingv1.HeaderMatcher) bool {
	for _, want := range wide {
		if !slices.ContainsFunc(narrow, func(have networkingv1.HeaderMatcher) bool {
			if !strings.EqualFold(want.Name, have.Name) || want.InvertMatch != have.InvertMatch {
				return false
			}
			present := want.Value == "" && !want.InvertMatch // any value matches
			return present || want.Value == have.Value && want.Regex == have.Regex
		}) {
			return false
		}
	}
	return true
}

func queryContains(wide, narrow []networkingv1.QueryParameterMatcher) bool {
	for _, want := range wide {
		if !slices.ContainsFunc(narrow, func(have networkingv1.QueryParameterMatcher) bool {
			return want.Name == have.Name && (want.Value == "" || want.Value == have.Value && want.Regex == have.Regex)
		}) {
			return false
		}
	}
	return true
}
