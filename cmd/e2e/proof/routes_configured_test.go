package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
)

// configuredRoutes formats a virtual host like plannedRoutes. A setting that the Plan
// leaves to the mesh, such as retries, is omitted only if it has the default of the
// mesh.
func configuredRoutes(vh *envoy.VirtualHost) []string {
	if vh == nil {
		return []string{"no virtual host"}
	}
	var out []string
	for _, r := range vh.Routes {
		out = append(out, configuredMatch(r.Match)+configuredAction(r))
	}
	return out
}

func configuredMatch(m envoy.RouteMatch) string {
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
		// Envoy converts the name to lower case.
		text := "header " + strings.ToLower(h.Name) + configuredValue(h.StringMatch, h.PresentMatch)
		if h.InvertMatch {
			text = "not " + text
		}
		if h.TreatMissingHeaderAsEmpty {
			text += " (a missing one is empty)"
		}
		conditions = append(conditions, text)
	}
	for _, q := range m.QueryParameters {
		conditions = append(conditions, "query "+q.Name+configuredValue(q.StringMatch, q.PresentMatch))
	}
	slices.Sort(conditions)
	return strings.Join(append([]string{path}, conditions...), ", ")
}

func configuredValue(m *envoy.StringMatcher, present bool) string {
	switch {
	case m == nil && present:
		return " present"
	case m == nil:
		return " ?"
	default:
		return " " + configuredString(*m)
	}
}

// configuredString formats a match of a complete string.
func configuredString(m envoy.StringMatcher) string {
	fold := ""
	if m.IgnoreCase {
		fold = " in any case"
	}
	switch {
	case m.SafeRegex.Regex != "":
		return "~ " + m.SafeRegex.Regex
	case m.Prefix != "":
		return "^ " + m.Prefix + fold
	case m.Suffix != "":
		return "$ " + m.Suffix + fold
	default:
		return "= " + m.Exact + fold
	}
}

func configuredAction(r envoy.Route) string {
	out := " -> " + configuredTargets(r.Route) + " timeout " + r.Route.Timeout + " retries " + configuredRetries(r.Route.RetryPolicy)
	for _, m := range r.Route.RequestMirrorPolicies {
		out += fmt.Sprintf(" mirror %v%% %s", m.RuntimeFraction.DefaultValue.Percent(), m.Cluster)
	}
	return out + hostText(r.Route.HostRewriteLiteral) + headerText("request", options(r.RequestHeadersToAdd), r.RequestHeadersToRemove) +
		headerText("response", options(r.ResponseHeadersToAdd), r.ResponseHeadersToRemove) + configuredFilters(r)
}

// meshRetries and meshRetryOn are Istio's default retry policy
// (istio.io MeshConfig.defaultHttpRetryPolicy).
const (
	meshRetries = 2
	meshRetryOn = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
)

func configuredRetries(r *envoy.RetryPolicy) string {
	switch {
	case r == nil:
		return "0"
	case r.RetryOn == meshRetryOn && r.NumRetries == meshRetries && r.PerTryTimeout == "":
		return "of the mesh"
	default:
		return retryText(r.NumRetries, r.PerTryTimeout, r.RetryOn)
	}
}

func hostText(host string) string {
	if host == "" {
		return ""
	}
	return " host " + host
}

func configuredTargets(a envoy.RouteAction) string {
	var out []string
	for _, t := range a.Targets() {
		text := t.Name + hostText(t.HostRewriteLiteral) + headerText("request", options(t.RequestHeadersToAdd), t.RequestHeadersToRemove) +
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

// configuredFilters formats the settings of a route for HTTP filters.
func configuredFilters(r envoy.Route) string {
	out := ""
	if f, ok := decode[faultFilter](r.TypedPerFilterConfig["envoy.filters.http.fault"]); ok {
		if f.Delay != nil {
			out += fmt.Sprintf(" delay %s %v%%", f.Delay.FixedDelay, f.Delay.Percentage.Percent())
		}
		if f.Abort != nil {
			out += fmt.Sprintf(" abort %d %v%%", f.Abort.HTTPStatus, f.Abort.Percentage.Percent())
		}
	}
	return out + configuredCORS(r) + configuredOwnFilters(r)
}

func configuredCORS(r envoy.Route) string {
	c, ok := decode[corsFilter](r.TypedPerFilterConfig["envoy.filters.http.cors"])
	if !ok {
		return ""
	}
	var origins []string
	for _, o := range c.AllowOriginStringMatch {
		origins = append(origins, configuredString(o))
	}
	out := fmt.Sprintf(" cors %v methods %s headers %s expose %s", origins, c.AllowMethods, c.AllowHeaders, c.ExposeHeaders)
	if c.MaxAge != "" {
		out += " age " + c.MaxAge
	}
	if c.AllowCredentials != nil {
		out += fmt.Sprintf(" credentials %v", *c.AllowCredentials)
	}
	return out
}
