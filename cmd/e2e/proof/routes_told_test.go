package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/demo/envoy"
)

// toldRoutes spells a virtual host as plannedRoutes does. What the Plan leaves
// to the mesh and the mesh has its own word for, such as retries, is left out
// only where it has the mesh's own value.
func toldRoutes(vh *envoy.VirtualHost) []string {
	if vh == nil {
		return []string{"no virtual host"}
	}
	var out []string
	for _, r := range vh.Routes {
		out = append(out, toldMatch(r.Match)+toldAction(r))
	}
	return out
}

func toldMatch(m envoy.RouteMatch) string {
	fold := ""
	if m.CaseSensitive != nil && !*m.CaseSensitive {
		fold = " in any case"
	}
	var path string
	switch {
	case m.Path != "":
		path = "path " + m.Path + fold
	case m.SafeRegex.Regex != "":
		path = "regex " + m.SafeRegex.Regex
	default:
		path = "prefix " + m.Prefix + fold
	}
	var conditions []string
	for _, h := range m.Headers {
		not := ""
		if h.InvertMatch {
			not = "not "
		}
		// Envoy itself makes the name lower case.
		conditions = append(conditions, not+"header "+strings.ToLower(h.Name)+toldValue(h.StringMatch))
	}
	for _, q := range m.QueryParameters {
		conditions = append(conditions, "query "+q.Name+toldValue(q.StringMatch))
	}
	slices.Sort(conditions)
	return strings.Join(append([]string{path}, conditions...), ", ")
}

func toldValue(m *envoy.StringMatcher) string {
	switch {
	case m == nil:
		return " present"
	case m.SafeRegex.Regex != "":
		return " ~ " + m.SafeRegex.Regex
	default:
		return " = " + m.Exact
	}
}

// meshRetries is what Istio tells proxies where nobody asks for anything
// (istio.io MeshConfig.defaultHttpRetryPolicy).
const meshRetries = 2

func toldAction(r envoy.Route) string {
	out := " -> " + toldTargets(r.Route) + " timeout " + r.Route.Timeout
	switch retry := r.Route.RetryPolicy; {
	case retry == nil:
		out += " retries 0"
	case retry.NumRetries != meshRetries || retry.PerTryTimeout != "":
		out += fmt.Sprintf(" retries %d", retry.NumRetries)
		if retry.PerTryTimeout != "" {
			out += " of " + retry.PerTryTimeout
		}
	}
	for _, m := range r.Route.RequestMirrorPolicies {
		out += fmt.Sprintf(" mirror %v%% %s", m.RuntimeFraction.DefaultValue.Percent(), m.Cluster)
	}
	return out + headerText("request", options(r.RequestHeadersToAdd), r.RequestHeadersToRemove) +
		headerText("response", options(r.ResponseHeadersToAdd), r.ResponseHeadersToRemove) + toldFilters(r)
}

func toldTargets(a envoy.RouteAction) string {
	var out []string
	for _, t := range a.Targets() {
		text := t.Name + headerText("request", options(t.RequestHeadersToAdd), t.RequestHeadersToRemove) +
			headerText("response", options(t.ResponseHeadersToAdd), t.ResponseHeadersToRemove)
		if a.Cluster == "" {
			text = fmt.Sprintf("%d %s", t.Weight, text)
		}
		out = append(out, text)
	}
	return strings.Join(out, " + ")
}

func options(list []envoy.HeaderOption) []string {
	var out []string
	for _, o := range list {
		text := o.Header.Key + "=" + o.Header.Value
		if o.AppendAction != "" && o.AppendAction != "APPEND_IF_EXISTS_OR_ADD" {
			text += " " + o.AppendAction
		}
		out = append(out, text)
	}
	return out
}

type faultFilter struct {
	Delay *struct {
		FixedDelay string
		Percentage envoy.FractionalPercent
	}
	Abort *struct {
		HTTPStatus int
		Percentage envoy.FractionalPercent
	}
}

type corsFilter struct {
	AllowOriginStringMatch                            []envoy.StringMatcher
	AllowMethods, AllowHeaders, ExposeHeaders, MaxAge string
	AllowCredentials                                  *bool
}

// toldFilters spells what a route tells HTTP filters.
func toldFilters(r envoy.Route) string {
	out := ""
	if f, ok := decode[faultFilter](r.TypedPerFilterConfig["envoy.filters.http.fault"]); ok {
		if f.Delay != nil {
			out += fmt.Sprintf(" delay %s %v%%", f.Delay.FixedDelay, f.Delay.Percentage.Percent())
		}
		if f.Abort != nil {
			out += fmt.Sprintf(" abort %d %v%%", f.Abort.HTTPStatus, f.Abort.Percentage.Percent())
		}
	}
	c, ok := decode[corsFilter](r.TypedPerFilterConfig["envoy.filters.http.cors"])
	if !ok {
		return out
	}
	var origins []string
	for _, o := range c.AllowOriginStringMatch {
		switch {
		case o.Exact != "":
			origins = append(origins, "= "+o.Exact)
		case o.Prefix != "":
			origins = append(origins, "^ "+o.Prefix)
		default:
			origins = append(origins, "~ "+o.SafeRegex.Regex)
		}
	}
	out += fmt.Sprintf(" cors %v methods %s headers %s expose %s", origins, c.AllowMethods, c.AllowHeaders, c.ExposeHeaders)
	if c.MaxAge != "" {
		out += " age " + c.MaxAge
	}
	if c.AllowCredentials != nil {
		out += fmt.Sprintf(" credentials %v", *c.AllowCredentials)
	}
	return out
}
