package envoy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Request is one that a proxy looks at, to send it or to let it in.
type Request struct {
	Method string
	// Path may have a query.
	Path string
	// Host is what the caller asks for; empty if that is not known.
	Host string
	// Headers are those of the caller, with names in lower case.
	Headers map[string]string
	// Principal is the SPIFFE ID of the caller, and Port where the pod listens: both as the proxy of
	// the called pod knows them.
	Principal string
	Port      uint32
	// SNI is the name that the caller asks for in TLS; empty if it is not known.
	SNI string
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

// header is the value of a header. Unknown: the caller, or a proxy on the way, may have added it.
func (r Request) header(name string) (value string, found Answer) {
	name = strings.ToLower(name)
	switch name {
	case ":method":
		return r.Method, Yes
	case ":path":
		return r.Path, Yes
	case ":authority", "host":
		return r.Host, max(Unknown, answer(r.Host != ""))
	}
	value, has := r.Headers[name]
	switch {
	case has:
		return value, Yes
	case slices.ContainsFunc(added, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
		return "", Unknown
	}
	return "", No
}

// added begin the names of headers that clients and proxies add by themselves.
var added = []string{":", "x-forwarded-", "x-request-id", "x-envoy-", "x-b3-", "traceparent", "user-agent", "accept", "content-", "transfer-encoding"}

// RouteFor is the route that takes a request; nil if none does, or if that is not known (Envoy: config.route.v3.VirtualHost.routes).
func (v *VirtualHost) RouteFor(r Request) *Route {
	route, _ := v.routeFor(r)
	return route
}

// routeFor is RouteFor, with what is not known if that decides.
func (v *VirtualHost) routeFor(r Request) (*Route, string) {
	for i := range v.Routes {
		switch m := &v.Routes[i].Match; m.takes(r) {
		case Yes:
			return &v.Routes[i], ""
		case Unknown:
			return nil, fmt.Sprintf("whether route %s takes the request: %s", cmp.Or(v.Routes[i].Name, fmt.Sprint(i+1)), m.doubt())
		}
	}
	return nil, ""
}

// doubt says what of the conditions is not known.
func (m *RouteMatch) doubt() string {
	unknown := slices.Clone(m.unknown)
	for i := range m.Headers {
		unknown = append(unknown, m.Headers[i].unknown...)
		unknown = append(unknown, "header "+m.Headers[i].Name)
	}
	return "it has " + strings.Join(unknown, ", ")
}

// takes: all conditions hold (Envoy: config.route.v3.RouteMatch).
func (m *RouteMatch) takes(r Request) Answer {
	out := m.takesPath(r.path())
	for i := range m.Headers {
		out = min(out, m.Headers[i].holds(r))
	}
	for _, q := range m.QueryParameters {
		value, found := r.query(q.Name)
		holds := answer(found)
		if found && q.StringMatch != nil {
			holds = q.StringMatch.holds(value)
		}
		out = min(out, max(holds, doubtful(q.unknown)))
	}
	if len(m.unknown) > 0 {
		out = min(out, Unknown)
	}
	return out
}

// doubtful is Unknown if there are fields that are not known.
func doubtful(unknown []string) Answer {
	if len(unknown) > 0 {
		return Unknown
	}
	return No
}

func (m *RouteMatch) takesPath(path string) Answer {
	if m.SafeRegex.Regex != "" {
		return whole(m.SafeRegex.Regex, path)
	}
	wanted, separated := m.Path+m.Prefix, m.PathSeparatedPrefix
	if m.CaseSensitive != nil && !*m.CaseSensitive {
		wanted, separated, path = strings.ToLower(wanted), strings.ToLower(separated), strings.ToLower(path)
	}
	switch {
	case m.Path != "":
		return answer(path == wanted)
	case separated != "":
		return answer(path == separated || strings.HasPrefix(path, separated+"/"))
	}
	return answer(strings.HasPrefix(path, wanted))
}

func (h *HeaderMatcher) holds(r Request) Answer {
	value, found := r.header(h.Name)
	inverted := func(a Answer) Answer {
		if h.InvertMatch {
			return a.not()
		}
		return a
	}
	switch {
	case len(h.unknown) > 0:
		return Unknown
	case h.StringMatch == nil && h.SafeRegexMatch.Regex == "":
		return inverted(found)
	case found == Unknown:
		return Unknown
	case found == No && !h.TreatMissingHeaderAsEmpty:
		return No
	case h.StringMatch == nil:
		return inverted(whole(h.SafeRegexMatch.Regex, value))
	}
	return inverted(h.StringMatch.holds(value))
}

func (m *StringMatcher) holds(text string) Answer {
	if m.SafeRegex.Regex != "" {
		return whole(m.SafeRegex.Regex, text)
	}
	wanted := m.Exact + m.Prefix + m.Suffix + m.Contains
	if m.IgnoreCase {
		wanted, text = strings.ToLower(wanted), strings.ToLower(text)
	}
	switch {
	case len(m.unknown) > 0:
		return Unknown
	case m.Prefix != "":
		return answer(strings.HasPrefix(text, wanted))
	case m.Suffix != "":
		return answer(strings.HasSuffix(text, wanted))
	case m.Contains != "":
		return answer(strings.Contains(text, wanted))
	}
	return answer(text == wanted)
}

// whole reports whether an expression matches all of a text; Unknown if it is none of RE2's, which Go reads, too.
func whole(expression, text string) Answer {
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return Unknown
	}
	return answer(compiled.MatchString(text))
}

// Changed is a request as it leaves a proxy for a target of a route. Headers are changed for the target first, and then for the route, and
// removed before they are added (Envoy, HeaderParser.evaluateHeaders). Without a route, as for connections, nothing is changed.
func (r Request) Changed(target *ClusterWeight, route *Route) Request {
	if route == nil {
		return r
	}
	headers := maps.Clone(r.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	for _, change := range []struct {
		remove []string
		add    []HeaderOption
	}{{target.RequestHeadersToRemove, target.RequestHeadersToAdd}, {route.RequestHeadersToRemove, route.RequestHeadersToAdd}} {
		for _, name := range change.remove {
			delete(headers, strings.ToLower(name))
		}
		for _, option := range change.add {
			name, value := strings.ToLower(option.Header.Key), option.Header.Value
			have, found := headers[name]
			switch {
			case found && option.AppendAction == "ADD_IF_ABSENT", !found && option.AppendAction == "OVERWRITE_IF_EXISTS":
				continue
			case found && (option.AppendAction == "" || option.AppendAction == "APPEND_IF_EXISTS_OR_ADD"):
				value = have + "," + value
			}
			headers[name] = value
		}
	}
	r.Headers = headers
	r.Host = cmp.Or(target.HostRewriteLiteral, route.Route.HostRewriteLiteral, r.Host)
	return r
}
