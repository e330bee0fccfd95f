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
	check: func(c *fieldContext) []snapshot.Issue {
		return checkHeaders("policy.headerManipulation", c.spec.Policy.HeaderManipulation)
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		setIfUnset(&action.Headers, *c.spec.Policy.HeaderManipulation, origin)
	},
}

// checkHeaders reports the header changes that no proxy can make.
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

// isAuthority reports whether a header is the Host. Istio rewrites the authority
// instead of adding such a header.
func isAuthority(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

// checkChangeable rejects Host and pseudo-headers, which Envoy does not change.
func checkChangeable(field, name string) []snapshot.Issue {
	if strings.HasPrefix(name, ":") || strings.EqualFold(name, "host") {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "remove it",
			"%s: proxies do not change header %s", field, name).At(field)}
	}
	return checkHeaderName(field, name)
}

// pseudoHeaders replace the request line in HTTP/2 (RFC 9113 section 8.3.1); proxies
// also set them for HTTP/1.
var pseudoHeaders = []string{":method", ":scheme", ":authority", ":path"}

// checkMatchable checks a name in a condition, which may be a pseudo-header.
func checkMatchable(field, name string) []snapshot.Issue {
	if slices.Contains(pseudoHeaders, name) {
		return nil
	}
	return checkHeaderName(field, name)
}

// tokenMarks are the characters besides letters and digits in a header name (RFC 9110
// section 5.6.2).
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
		"%s: %q is not a valid header name", field, name).At(field)}
}

// checkHeaderValue rejects values that proxies do not write as they are: they
// substitute %WORD%, so a single percent sign is an unfinished word, and control
// characters end the header.
func checkHeaderValue(field, value string) []snapshot.Issue {
	if strings.ContainsFunc(value, func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }) {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "remove them", "%s contains control characters", field).At(field)}
	}
	if strings.Count(value, "%")%2 != 0 {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "write %% for a percent sign, or end the word with one",
			"%s: proxies read a percent sign as the beginning of a word such as %%REQ(x-name)%%", field).At(field)}
	}
	return nil
}
