package policy

import (
	"maps"
	"slices"
	"strings"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var headerManipulation = feature{
	field: "policy.headerManipulation",
	value: func(p *networkingv1.Policy) any { return has(p.HeaderManipulation) },
	check: func(s *setting) []snapshot.Issue {
		return checkHeaders("policy.headerManipulation", s.spec.Policy.HeaderManipulation)
	},
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.Headers, *s.spec.Policy.HeaderManipulation, origin)
	},
}

// checkHeaders says which changes of headers no proxy can make.
func checkHeaders(field string, h *networkingv1.HeaderManipulation) []snapshot.Issue {
	if h == nil {
		return nil
	}
	var issues []snapshot.Issue
	added := func(field string, headers map[string]string, request bool) {
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			if !request || !isAuthority(name) {
				issues = append(issues, checkChangeable(field, name)...)
			}
			issues = append(issues, checkHeaderValue(field+"["+name+"]", headers[name])...)
		}
	}
	removed := func(field string, names []string) {
		for _, name := range names {
			issues = append(issues, checkChangeable(field, name)...)
		}
	}
	added(field+".appendRequestHeaders", h.AppendRequestHeaders, true)
	removed(field+".removeRequestHeaders", h.RemoveRequestHeaders)
	added(field+".appendResponseHeaders", h.AppendResponseHeaders, false)
	removed(field+".removeResponseHeaders", h.RemoveResponseHeaders)
	return issues
}

// isAuthority: an added Host replaces the one that the request has, as Istio
// makes a rewrite of it.
func isAuthority(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

// checkChangeable: Envoy lets nobody change Host and what begins with a colon.
func checkChangeable(field, name string) []snapshot.Issue {
	if strings.HasPrefix(name, ":") || strings.EqualFold(name, "host") {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "remove it",
			"%s: proxies do not let header %s be changed", field, name)}
	}
	return checkHeaderName(field, name)
}

// pseudoHeaders are what HTTP/2 puts in the place of the request line (RFC 9113
// section 8.3.1); proxies keep them for HTTP/1, too.
var pseudoHeaders = []string{":method", ":scheme", ":authority", ":path"}

// checkMatchable: conditions may also be about pseudo-headers.
func checkMatchable(field, name string) []snapshot.Issue {
	if slices.Contains(pseudoHeaders, name) {
		return nil
	}
	return checkHeaderName(field, name)
}

// tokenMarks are what a header's name can have besides letters and digits (RFC
// 9110 section 5.6.2).
const tokenMarks = "!#$%&'*+-.^_`|~"

func checkHeaderName(field, name string) []snapshot.Issue {
	bad := func(r rune) bool {
		letter := (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9')
		return !letter && !strings.ContainsRune(tokenMarks, r)
	}
	if name != "" && !strings.ContainsFunc(name, bad) {
		return nil
	}
	return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "write letters, digits and hyphens only",
		"%s: %q cannot be the name of a header", field, name)}
}

// checkHeaderValue: proxies put something else in the place of %WORD%, and so
// take a value with an odd percent sign for half a word. Control characters end
// the header.
func checkHeaderValue(field, value string) []snapshot.Issue {
	if strings.ContainsFunc(value, func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }) {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "remove them", "%s has control characters", field)}
	}
	if strings.Count(value, "%")%2 != 0 {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "write %% for a percent sign, or end the word with one",
			"%s: proxies take a percent sign for the beginning of a word such as %%REQ(x-name)%%", field)}
	}
	return nil
}
