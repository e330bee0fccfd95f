package proof

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// routeFacts: every route of every host that a sidecar may call, in order.
func routeFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p) {
		for _, port := range portsFor(s.plan, requests) {
			out = append(out, fact{
				name: fmt.Sprintf("routes to %s:%d", s.host, port),
				want: plannedRoutes(s, p, port),
				look: func(config *envoy.Config) []string { return configuredRoutes(config.VirtualHost(s.host, port)) },
			})
		}
	}
	return out
}

func plannedRoutes(s seen, p proxy, port uint32) []string {
	if s.view == nil || len(s.view.Routes) == 0 {
		return []string{"prefix / -> " + clusterName(s.host, port, "") + " timeout 0s retries of the mesh"}
	}
	var out []string
	for _, r := range s.view.Routes {
		if r.Match.SourceNamespace != "" && r.Match.SourceNamespace != p.namespace {
			continue
		}
		if !contains(p.labels, r.Match.SourceLabels) {
			continue
		}
		match := plannedMatch(r.Match.Request, false)
		out = append(out, plannedByMethod(r, s.host, port)...)
		if match == "prefix /" {
			break // the next routes get no requests of these callers
		}
	}
	return out
}

// plannedByMethod are two routes if the method decides what is retried.
func plannedByMethod(r *snapshot.Route, host string, port uint32) []string {
	match, a := plannedMatch(r.Match.Request, false), *r.Action
	if a.Retries == nil {
		return []string{match + plannedAction(&a, host, port)}
	}
	all := *a.Retries
	a.Retries = &all
	if r.Match.Request != nil && r.Match.Request.Method != "" {
		all.Value = all.Value.For(r.Match.Request.Method)
	}
	routes := []string{match + plannedAction(&a, host, port)}
	if len(all.Value.AlsoIdempotent) > 0 {
		all.Value = all.Value.For("GET")
		routes = append([]string{plannedMatch(r.Match.Request, true) + plannedAction(&a, host, port)}, routes...)
	}
	return routes
}

func contains(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func plannedMatch(m *networkingv1.HttpMatcher, idempotent bool) string {
	var conditions []string
	if idempotent {
		conditions = append(conditions, "header :method ~ GET|HEAD|OPTIONS|TRACE|PUT|DELETE")
	}
	if m == nil {
		m = &networkingv1.HttpMatcher{}
	}
	parts := []string{plannedPath(m.Uri)}
	for _, h := range m.Headers {
		text := "header " + strings.ToLower(h.Name) + plannedValue(h.Value, h.Regex)
		switch {
		case h.InvertMatch && h.Value != "":
			text = "not " + text + " (a missing one is empty)"
		case h.InvertMatch:
			text = "not " + text
		}
		conditions = append(conditions, text)
	}
	if m.Method != "" {
		conditions = append(conditions, "header :method = "+m.Method)
	}
	for _, q := range m.QueryParameters {
		conditions = append(conditions, "query "+q.Name+plannedValue(q.Value, q.Regex))
	}
	slices.Sort(conditions)
	return strings.Join(append(parts, conditions...), ", ")
}

func plannedPath(m *commonv1.StringMatch) string {
	fold := ""
	if m != nil && m.IgnoreCase {
		fold = " in any case"
	}
	switch {
	case m == nil:
		return "prefix /"
	case m.Exact != "":
		return "path " + m.Exact + fold
	case m.Prefix != "":
		return "prefix " + m.Prefix + fold
	case m.Suffix != "" && m.IgnoreCase:
		return "regex (?i).*" + regexp.QuoteMeta(m.Suffix)
	case m.Suffix != "":
		return "regex .*" + regexp.QuoteMeta(m.Suffix)
	default:
		return "regex " + m.Regex
	}
}

func plannedValue(value string, regex bool) string {
	switch {
	case value == "":
		return " present"
	case regex:
		return " ~ " + value
	default:
		return " = " + value
	}
}

func plannedAction(a *snapshot.Action, host string, port uint32) string {
	out := " -> " + plannedTargets(a, host, port)
	if a.Timeout != nil {
		out += " timeout " + protoDuration(a.Timeout.Value)
	} else {
		out += " timeout 0s"
	}
	out += " retries " + plannedRetries(a)
	if m := a.Mirror; m != nil && m.Value.Percent > 0 {
		out += fmt.Sprintf(" mirror %v%% %s", m.Value.Percent, clusterName(m.Value.Host, m.Value.Port, ""))
	}
	out += plannedHeaders(routeHeaders(a))
	if a.Delay != nil {
		out += fmt.Sprintf(" delay %s %v%%", protoDuration(a.Delay.Value.Duration), a.Delay.Value.Percent)
	}
	if a.Abort != nil {
		out += fmt.Sprintf(" abort %d %v%%", a.Abort.Value.Status, a.Abort.Value.Percent)
	}
	if a.CORS != nil {
		out += plannedCORS(a.CORS.Value)
	}
	return out + plannedFilters(a)
}

func plannedRetries(a *snapshot.Action) string {
	if a.Retries == nil {
		return "of the mesh"
	}
	r := a.Retries.Value
	if r.Attempts == 0 {
		return "0"
	}
	on := make([]string, len(r.On))
	for i, c := range r.On {
		on[i] = string(c)
	}
	return retryText(uint32(r.Attempts), protoDuration(r.PerTry), strings.Join(on, ","))
}

func retryText(retries uint32, perTry, on string) string {
	if perTry == "" || perTry == "0s" {
		perTry = "any time"
	}
	return fmt.Sprintf("%d of %s on %s", retries, perTry, on)
}

func plannedTargets(a *snapshot.Action, host string, port uint32) string {
	if a.Targets == nil {
		return clusterName(host, port, "")
	}
	targets := a.Targets.Value
	if len(targets) == 1 {
		return clusterName(targets[0].Host, targets[0].Port, targets[0].Subset)
	}
	var out []string
	for _, t := range targets {
		if t.Weight > 0 {
			out = append(out, fmt.Sprintf("%d %s", t.Weight, clusterName(t.Host, t.Port, t.Subset)+plannedHeaders(t.Headers)))
		}
	}
	return strings.Join(out, " + ")
}

// routeHeaders are the header changes of a route; if it has only one target, those
// of the target, too.
func routeHeaders(a *snapshot.Action) *networkingv1.HeaderManipulation {
	out := &networkingv1.HeaderManipulation{AppendRequestHeaders: map[string]string{}, AppendResponseHeaders: map[string]string{}}
	add := func(h *networkingv1.HeaderManipulation) {
		if h == nil {
			return
		}
		maps.Copy(out.AppendRequestHeaders, h.AppendRequestHeaders)
		maps.Copy(out.AppendResponseHeaders, h.AppendResponseHeaders)
		out.RemoveRequestHeaders = append(out.RemoveRequestHeaders, h.RemoveRequestHeaders...)
		out.RemoveResponseHeaders = append(out.RemoveResponseHeaders, h.RemoveResponseHeaders...)
	}
	if a.Headers != nil {
		add(&a.Headers.Value)
	}
	if a.Targets != nil && len(a.Targets.Value) == 1 {
		add(a.Targets.Value[0].Headers)
	}
	return out
}

func plannedHeaders(h *networkingv1.HeaderManipulation) string {
	if h == nil {
		return ""
	}
	host := ""
	for k, v := range h.AppendRequestHeaders {
		if isHost(k) {
			host = " host " + v
		}
	}
	return host + headerText("request", pairs(h.AppendRequestHeaders), h.RemoveRequestHeaders) +
		headerText("response", pairs(h.AppendResponseHeaders), h.RemoveResponseHeaders)
}

// isHost: there is only one host, so adding it replaces it.
func isHost(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

func pairs(m map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !isHost(k) {
			out = append(out, k+"="+m[k])
		}
	}
	return out
}

func headerText(of string, add, remove []string) string {
	out := ""
	if add = slices.Sorted(slices.Values(add)); len(add) > 0 {
		out += fmt.Sprintf(" add to %s %v", of, add)
	}
	if remove = slices.Sorted(slices.Values(remove)); len(remove) > 0 {
		out += fmt.Sprintf(" remove from %s %v", of, remove)
	}
	return out
}

func plannedCORS(c networkingv1.CorsPolicy) string {
	var origins []string
	for _, o := range c.AllowOrigins {
		switch {
		case o.Exact != "" && o.IgnoreCase:
			origins = append(origins, "~ (?i)"+regexp.QuoteMeta(o.Exact))
		case o.Exact != "":
			origins = append(origins, "= "+o.Exact)
		case o.Prefix != "" && o.IgnoreCase:
			origins = append(origins, "~ (?i)"+regexp.QuoteMeta(o.Prefix)+".*")
		case o.Prefix != "":
			origins = append(origins, "^ "+o.Prefix)
		case o.Suffix != "":
			origins = append(origins, "~ .*"+regexp.QuoteMeta(o.Suffix))
		default:
			origins = append(origins, "~ "+o.Regex)
		}
	}
	out := fmt.Sprintf(" cors %v methods %s headers %s expose %s", origins,
		strings.Join(c.AllowMethods, ","), strings.Join(c.AllowHeaders, ","), strings.Join(c.ExposeHeaders, ","))
	if c.MaxAge != nil {
		out += " age " + strconv.Itoa(int(c.MaxAge.Seconds()))
	}
	if c.AllowCredentials != nil {
		out += " credentials " + strconv.FormatBool(*c.AllowCredentials)
	}
	return out
}

// protoDuration formats a duration like protojson.
func protoDuration(d time.Duration) string {
	text := strconv.FormatFloat(d.Seconds(), 'f', 9, 64)
	for strings.HasSuffix(text, "000") {
		text = strings.TrimSuffix(text, "000")
	}
	return strings.TrimSuffix(text, ".") + "s"
}

// decode reads the configuration of one filter.
func decode[T any](raw json.RawMessage) (out T, ok bool) {
	return out, len(raw) > 0 && json.Unmarshal(raw, &out) == nil
}
