package istio

import (
	"regexp"

	networking "istio.io/api/networking/v1alpha3"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// matchRequest renders a match for one port.
func matchRequest(m snapshot.Match, port uint32) *networking.HTTPMatchRequest {
	out := &networking.HTTPMatchRequest{Port: port, SourceNamespace: m.SourceNamespace, SourceLabels: m.SourceLabels}
	if m.Request == nil {
		return out
	}
	out.Uri, out.IgnoreUriCase = uriMatch(m.Request.Uri)
	if m.Request.Method != "" {
		out.Method = exact(m.Request.Method)
	}
	for _, h := range m.Request.Headers {
		if h.InvertMatch {
			set(&out.WithoutHeaders, h.Name, valueMatch(h.Value, h.Regex))
		} else {
			set(&out.Headers, h.Name, valueMatch(h.Value, h.Regex))
		}
	}
	for _, q := range m.Request.QueryParameters {
		set(&out.QueryParams, q.Name, valueMatch(q.Value, q.Regex))
	}
	return out
}

func set(m *map[string]*networking.StringMatch, name string, match *networking.StringMatch) {
	if *m == nil {
		*m = map[string]*networking.StringMatch{}
	}
	(*m)[name] = match
}

// valueMatch renders the condition on a header or query parameter. Without a value, its
// presence is required, which is a StringMatch without a match type in Istio (istio.io
// HTTPMatchRequest.headers).
func valueMatch(value string, isRegex bool) *networking.StringMatch {
	switch {
	case value == "":
		return &networking.StringMatch{}
	case isRegex:
		return regex(value)
	default:
		return exact(value)
	}
}

// uriMatch renders a path and whether it is case-sensitive. Istio can ignore case for
// exact paths and prefixes only, and has no suffixes.
func uriMatch(m *commonv1.StringMatch) (match *networking.StringMatch, ignoreCase bool) {
	if m == nil || (*m == commonv1.StringMatch{IgnoreCase: m.IgnoreCase}) {
		return nil, false
	}
	switch {
	case m.Exact != "" || m.Prefix != "":
		return stringMatch(commonv1.StringMatch{Exact: m.Exact, Prefix: m.Prefix}), m.IgnoreCase
	default:
		return stringMatch(*m), false
	}
}

// stringMatch renders a match of a whole string. What Istio has no match type for
// becomes a regular expression (RE2).
func stringMatch(m commonv1.StringMatch) *networking.StringMatch {
	fold := ""
	if m.IgnoreCase {
		fold = "(?i)"
	}
	switch {
	case m.Suffix != "":
		return regex(fold + ".*" + regexp.QuoteMeta(m.Suffix))
	case m.Regex != "":
		return regex(m.Regex)
	case m.Prefix != "" && m.IgnoreCase:
		return regex(fold + regexp.QuoteMeta(m.Prefix) + ".*")
	case m.Prefix != "":
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: m.Prefix}}
	case m.IgnoreCase:
		return regex(fold + regexp.QuoteMeta(m.Exact))
	default:
		return exact(m.Exact)
	}
}

func exact(s string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: s}}
}

func regex(s string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: s}}
}
