package envoy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Request is one that a proxy looks at, to send it or to let it in.
type Request struct {
	Method string
	// Path may have a query.
	Path string
	// Headers are those of the caller, with names in lower case.
	Headers map[string]string
	// Principal is the SPIFFE ID of the caller, and Port where the pod listens: both as the proxy of
	// the called pod knows them.
	Principal string
	Port      uint32
}

func (r Request) path() string {
	path, _, _ := strings.Cut(r.Path, "?")
	return path
}

func (r Request) query(name string) (string, bool) {
	_, query, _ := strings.Cut(r.Path, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}

func (r Request) header(name string) (string, bool) {
	if name == ":method" {
		return r.Method, true
	}
	value, found := r.Headers[strings.ToLower(name)]
	return value, found
}

// RouteFor is the route that takes a request; nil if none does (Envoy: config.route.v3.VirtualHost.routes).
func (v *VirtualHost) RouteFor(r Request) *Route {
	for i := range v.Routes {
		if v.Routes[i].Match.takes(r) {
			return &v.Routes[i]
		}
	}
	return nil
}

// takes: all conditions hold (Envoy: config.route.v3.RouteMatch).
func (m *RouteMatch) takes(r Request) bool {
	return m.takesPath(r.path()) &&
		!slices.ContainsFunc(m.Headers, func(h HeaderMatcher) bool { return !h.holds(r) }) &&
		!slices.ContainsFunc(m.QueryParameters, func(q QueryParameterMatcher) bool {
			value, found := r.query(q.Name)
			return !found || q.StringMatch != nil && !q.StringMatch.holds(value)
		})
}

func (m *RouteMatch) takesPath(path string) bool {
	if m.SafeRegex.Regex != "" {
		return whole(m.SafeRegex.Regex, path)
	}
	wanted, separated := m.Path+m.Prefix, m.PathSeparatedPrefix
	if m.CaseSensitive != nil && !*m.CaseSensitive {
		wanted, separated, path = strings.ToLower(wanted), strings.ToLower(separated), strings.ToLower(path)
	}
	switch {
	case m.Path != "":
		return path == wanted
	case separated != "":
		return path == separated || strings.HasPrefix(path, separated+"/")
	}
	return strings.HasPrefix(path, wanted)
}

func (h *HeaderMatcher) holds(r Request) bool {
	value, found := r.header(h.Name)
	switch {
	case h.StringMatch == nil && h.SafeRegexMatch.Regex == "":
		return found != h.InvertMatch
	case !found && !h.TreatMissingHeaderAsEmpty:
		return false
	case h.StringMatch == nil:
		return whole(h.SafeRegexMatch.Regex, value) != h.InvertMatch
	}
	return h.StringMatch.holds(value) != h.InvertMatch
}

func (m *StringMatcher) holds(text string) bool {
	if m.SafeRegex.Regex != "" {
		return whole(m.SafeRegex.Regex, text)
	}
	wanted := m.Exact + m.Prefix + m.Suffix + m.Contains
	if m.IgnoreCase {
		wanted, text = strings.ToLower(wanted), strings.ToLower(text)
	}
	switch {
	case m.Prefix != "":
		return strings.HasPrefix(text, wanted)
	case m.Suffix != "":
		return strings.HasSuffix(text, wanted)
	case m.Contains != "":
		return strings.Contains(text, wanted)
	}
	return text == wanted
}

// whole reports whether an expression matches all of a text.
func whole(expression, text string) bool {
	return regexp.MustCompile("^(?:" + expression + ")$").MatchString(text)
}

// Admits reports whether an RBAC filter lets a request in; nil rules let all in.
func (a *RBAC) Admits(r Request) bool {
	if a == nil {
		return true
	}
	matched := false
	for _, policy := range a.Policies {
		if holdsAny(policy.Permissions, r) && holdsAny(policy.Principals, r) {
			matched = true
			break
		}
	}
	return matched != (a.Action == "DENY")
}

func holdsAny(conditions []Condition, r Request) bool {
	return slices.ContainsFunc(conditions, func(c Condition) bool { return holds(c.tree, r) })
}

// holds panics at a condition that it does not know: an answer that leaves it out would be wrong.
func holds(tree map[string]any, r Request) bool {
	for _, kind := range slices.Sorted(keys(tree)) {
		value := tree[kind]
		switch kind {
		case "andRules", "andIds":
			return !slices.ContainsFunc(listed(value), func(one map[string]any) bool { return !holds(one, r) })
		case "orRules", "orIds":
			return slices.ContainsFunc(listed(value), func(one map[string]any) bool { return holds(one, r) })
		case "notRule", "notId":
			return !holds(object(value), r)
		case "any":
			return true
		case "destinationPort":
			return fmt.Sprint(value) == fmt.Sprint(r.Port)
		case "urlPath":
			return matches(object(object(value)["path"]), r.path())
		case "header":
			header := object(value)
			have, found := r.header(fmt.Sprint(header["name"]))
			return found && matches(object(header["stringMatch"]), have)
		case "uriTemplate":
			return templateMatches(fmt.Sprint(object(object(value)["typedConfig"])["pathTemplate"]), r.path())
		case "authenticated":
			name := object(object(value)["principalName"])
			return r.Principal != "" && (len(name) == 0 || matches(name, r.Principal))
		case "filterState":
			return r.Principal != "" && matches(object(object(value)["stringMatch"]), r.Principal)
		}
	}
	panic(fmt.Sprintf("a condition of an unknown kind: %v", tree))
}

func listed(value any) (out []map[string]any) {
	set := object(value)
	list, _ := set["rules"].([]any)
	if list == nil {
		list, _ = set["ids"].([]any)
	}
	for _, one := range list {
		out = append(out, object(one))
	}
	return out
}

func matches(match map[string]any, text string) bool {
	for kind, value := range match {
		wanted := fmt.Sprint(value)
		switch kind {
		case "exact":
			return text == wanted
		case "prefix":
			return strings.HasPrefix(text, wanted)
		case "suffix":
			return strings.HasSuffix(text, wanted)
		case "contains":
			return strings.Contains(text, wanted)
		case "safeRegex":
			return whole(fmt.Sprint(object(value)["regex"]), text)
		}
	}
	panic(fmt.Sprintf("a match of an unknown kind: %v", match))
}

// templateMatches: * is a part between slashes, and ** any number of them (Envoy:
// extensions.path.match.uri_template.v3).
func templateMatches(template, path string) bool {
	expression := regexp.QuoteMeta(template)
	expression = strings.ReplaceAll(expression, `\*\*`, `.*`)
	expression = strings.ReplaceAll(expression, `\*`, `[^/]+`)
	return whole(expression, path)
}
