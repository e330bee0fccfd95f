package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// View is the route table of a Destination as callers of one mesh see it.
type View struct {
	Mesh snapshot.Ref `json:"mesh"`
	// Own is true for the mesh that the service is part of.
	Own  bool   `json:"own,omitempty"`
	Host string `json:"host"`
	// Routes are tried in this order; none means that requests go to Host unchanged.
	Routes []Route `json:"routes"`
	// Connections are the ports for which no route holds, as proxies see no requests there.
	Connections []uint32 `json:"connectionPorts,omitempty"`
	// Settings hold for all requests.
	Settings []Setting `json:"settings,omitempty"`
	Subsets  []Subset  `json:"subsets,omitempty"`
	// ByHand is what users wrote that routes requests of some callers, or of all, instead.
	ByHand []HandTable `json:"byHand,omitempty"`
}

// Route is what happens to requests that match.
type Route struct {
	// Match says in words which requests; "any" is all.
	Match    string         `json:"match"`
	Policies []snapshot.Ref `json:"policies,omitempty"`
	// Targets are where requests go; none means to the service itself.
	Targets []Target `json:"targets,omitempty"`
	// Missing are the targets that get no requests because they cannot be reached.
	Missing []MissingTarget `json:"missing,omitempty"`
	// TargetsOrigin is what the targets follow from; nil if there are none.
	TargetsOrigin *snapshot.Origin `json:"targetsBy,omitempty"`
	Settings      []Setting        `json:"settings,omitempty"`
	// Instead says what becomes of requests that go to no target, or of which it is not followed where they go; else empty.
	Instead string `json:"instead,omitempty"`
}

// Target is one of the places that requests go to.
type Target struct {
	Destination snapshot.Ref `json:"destination"`
	Cluster     string       `json:"cluster"`
	Host        string       `json:"host"`
	Port        uint32       `json:"port"`
	Subset      string       `json:"subset,omitempty"`
	Weight      uint32       `json:"weight"`
	// Share of the requests, in percent.
	Share float64 `json:"share"`
	// Asked is the share that the policy asks for; nil if that is Share.
	Asked *float64 `json:"asked,omitempty"`
	// Headers says which are changed for this target only.
	Headers string `json:"headers,omitempty"`
	// Endpoints is how many ready pods it has; nil if not known.
	Endpoints *int `json:"endpoints,omitempty"`
}

// MissingTarget is one of the places that requests would go to if it could be reached.
type MissingTarget struct {
	// Name is what the policy calls it.
	Name    string `json:"name"`
	Cluster string `json:"cluster,omitempty"`
	Subset  string `json:"subset,omitempty"`
	Weight  uint32 `json:"weight"`
	// Asked is the share of the requests that the policy asks for, in percent.
	Asked float64 `json:"asked"`
}

// Setting is a value in force, and the policy and field that set it.
type Setting struct {
	Name   string          `json:"name"`
	Value  string          `json:"value"`
	Origin snapshot.Origin `json:"by"`
}

// Subset is a named part of a service's pods.
type Subset struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// viewsOf are what callers of each mesh get, if that differs from what they get of a service that nothing routes.
func viewsOf(x *Index, d *snapshot.DestinationPlan) []View {
	out := []View{}
	for _, v := range x.unwritten.viewsOf(d) {
		out = append(out, describing(x).view(d, v))
	}
	if d.Mesh == nil {
		return out
	}
	for _, m := range x.state.Plan.Meshes {
		tables := handTables(x, m, d)
		if len(tables) == 0 {
			continue
		}
		at := slices.IndexFunc(out, func(v View) bool { return v.Mesh == m.Ref })
		if at < 0 {
			at = len(out)
			out = append(out, View{Mesh: m.Ref, Own: m == d.Mesh, Host: hostFrom(m, d), Routes: []Route{}})
		}
		out[at].ByHand = tables
	}
	return out
}

func (x describer) view(d *snapshot.DestinationPlan, v *snapshot.View) View {
	out := View{Mesh: v.Mesh.Ref, Own: v.Mesh == d.Mesh, Host: v.Host, Routes: []Route{}, Settings: viewSettings(d, v)}
	for _, r := range v.Routes {
		out.Routes = append(out.Routes, x.route(r))
	}
	if k := d.Destination.Spec.KubeService; k != nil && len(out.Routes) > 0 && !v.Mesh.Dialect.KeepsPort {
		for i := range k.Ports {
			if p := &k.Ports[i]; (p.Protocol == "" || p.Protocol == "TCP") && !v.Mesh.Dialect.IsHTTP(p) {
				out.Connections = append(out.Connections, p.Port)
			}
		}
	}
	for _, s := range v.Subsets {
		out.Subsets = append(out.Subsets, Subset{Name: s.Name, Labels: s.Labels})
	}
	return out
}

func (x describer) route(r *snapshot.Route) Route {
	out := Route{Match: matchText(r.Match), Policies: r.Action.Policies, Settings: actionSettings(r)}
	targets, missing := r.Action.Targets, r.Action.Missing
	inForce, asked := shares{}, shares{}
	if targets != nil {
		out.TargetsOrigin = &targets.Origin
		for _, t := range targets.Value {
			inForce.add(t.Weight)
			asked.add(t.Weight)
		}
	}
	if missing != nil {
		out.TargetsOrigin = &missing.Origin
		for _, m := range missing.Value {
			asked.add(m.Weight)
		}
		for _, m := range missing.Value {
			out.Missing = append(out.Missing, MissingTarget{Name: m.Name, Cluster: m.Cluster, Subset: m.Subset, Weight: m.Weight, Asked: asked.of(m.Weight)})
		}
	}
	if targets == nil {
		return out
	}
	for _, t := range targets.Value {
		target := Target{
			Destination: t.Destination, Cluster: x.clusterOf(t.Destination), Host: t.Host,
			Port: t.Port, Subset: t.Subset, Weight: t.Weight, Share: inForce.of(t.Weight), Endpoints: x.behind(t),
		}
		if t.Headers != nil {
			target.Headers = headersText(*t.Headers)
		}
		if share := asked.of(t.Weight); share != target.Share {
			target.Asked = &share
		}
		out.Targets = append(out.Targets, target)
	}
	return out
}

// shares are what each of a number of weights gets of the requests.
type shares struct {
	sum float64
	n   int
}

func (s *shares) add(weight uint32) {
	s.sum += float64(weight)
	s.n++
}

// of is the share of a weight in percent. Weights say nothing where there is no choice.
func (s *shares) of(weight uint32) float64 {
	switch {
	case s.sum > 0:
		return 100 * float64(weight) / s.sum
	case s.n == 1:
		return 100
	}
	return 0
}

// set appends a setting if there is one.
func set[T any](list []Setting, name string, value *snapshot.WithOrigin[T], text func(T) string) []Setting {
	if value == nil {
		return list
	}
	return append(list, Setting{Name: name, Value: text(value.Value), Origin: value.Origin})
}

// viewSettings are the ones that hold for all requests from a mesh.
func viewSettings(d *snapshot.DestinationPlan, v *snapshot.View) []Setting {
	var s []Setting
	s = set(s, "outlier detection", v.Outlier, func(o networkingv1.OutlierDetection) string {
		if d.ThroughGateways(v.Mesh) {
			return outlierText(o) + "; by gateways, of pods to which they cannot connect"
		}
		return outlierText(o)
	})
	s = set(s, "TLS mode", v.TLS, func(m networkingv1.TLSMode) string { return string(m) })
	return set(s, "TCP keep-alive", v.KeepAlive, func(k snapshot.KeepAlive) string {
		return fmt.Sprintf("%s, first after %s, then every %s", snapshot.Count(int(k.Probes), "probe"), shortDuration(k.Time), shortDuration(k.Interval))
	})
}

// actionSettings are the ones of a route, without its targets.
func actionSettings(r *snapshot.Route) []Setting {
	a := r.Action
	var s []Setting
	s = set(s, "timeout", a.Timeout, shortDuration)
	s = append(s, retrySettings(r)...)
	s = set(s, "delay", a.Delay, func(d snapshot.Delay) string { return shortDuration(d.Duration) + " for " + ofRequests(d.Percent) })
	s = set(s, "abort", a.Abort, func(x snapshot.Abort) string {
		return fmt.Sprintf("%d to %s", x.Status, ofRequests(x.Percent))
	})
	s = set(s, "CORS", a.CORS, corsText)
	s = set(s, "mirror", a.Mirror, func(m snapshot.MirrorTarget) string {
		return fmt.Sprintf("%s of the requests to %s:%d", snapshot.Percent(m.Percent), m.Host, m.Port)
	})
	s = set(s, "headers", a.Headers, headersText)
	s = set(s, "CSRF check", a.CSRF, csrfText)
	return set(s, "rate limit", a.RateLimit, func(l snapshot.RateLimit) string {
		text := fmt.Sprintf("%d in %s for each calling pod", l.Requests, shortDuration(l.Per))
		if a.Retries != nil && len(r.Match.Retries(a.Retries.Value).AlsoIdempotent) > 0 {
			text += ", and again for methods that are not idempotent"
		}
		return text
	})
}

func durationText(d *metav1.Duration) string {
	if d == nil {
		return ""
	}
	return shortDuration(d.Duration)
}

// shortDuration is a duration without units that are zero: 2m, not 2m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// prefixed puts words before a text that is not empty.
func prefixed(words, text string) string {
	if text == "" {
		return ""
	}
	return words + text
}

func outlierText(o networkingv1.OutlierDetection) string {
	parts := []string{}
	if o.ConsecutiveErrors > 0 {
		parts = append(parts, snapshot.Count(int(o.ConsecutiveErrors), "error")+" in a row")
	}
	parts = appendText(parts, "checked every ", durationText(o.Interval))
	parts = appendText(parts, "ejected for ", durationText(o.BaseEjectionTime))
	if o.MaxEjectionPercent > 0 {
		parts = append(parts, fmt.Sprintf("at most %d%% ejected", o.MaxEjectionPercent))
	}
	if len(parts) == 0 {
		return "defaults"
	}
	return strings.Join(parts, ", ")
}

func appendText(parts []string, words, text string) []string {
	if text == "" {
		return parts
	}
	return append(parts, words+text)
}

func csrfText(c snapshot.CSRF) string {
	text := ofRequests(c.Percent)
	if c.Shadow {
		text += ", counted only"
	}
	origins := make([]string, len(c.Origins))
	for i, o := range c.Origins {
		origins[i] = stringText(o)
	}
	return text + prefixed("; other origins ", strings.Join(origins, ", "))
}

// ofRequests says how many: "all requests" or "12.5% of the requests".
func ofRequests(share float64) string {
	if share == 100 {
		return "all requests"
	}
	return snapshot.Percent(share) + " of the requests"
}

func corsText(c networkingv1.CorsPolicy) string {
	origins := make([]string, len(c.AllowOrigins))
	for i, o := range c.AllowOrigins {
		origins[i] = stringText(o)
	}
	parts := appendText(nil, "origins ", strings.Join(origins, ", "))
	parts = appendText(parts, "methods ", strings.Join(c.AllowMethods, ", "))
	parts = appendText(parts, "headers ", strings.Join(c.AllowHeaders, ", "))
	parts = appendText(parts, "cached for ", durationText(c.MaxAge))
	return strings.Join(parts, "; ")
}

func headersText(h networkingv1.HeaderManipulation) string {
	parts := appendText(nil, "request + ", labels(h.AppendRequestHeaders))
	parts = appendText(parts, "request - ", strings.Join(h.RemoveRequestHeaders, ","))
	parts = appendText(parts, "response + ", labels(h.AppendResponseHeaders))
	parts = appendText(parts, "response - ", strings.Join(h.RemoveResponseHeaders, ","))
	return strings.Join(parts, "; ")
}

// sections are the tables of a view.
func (v View) sections() []Section {
	whose := "another mesh, " + shortName(v.Mesh)
	if v.Own {
		whose = "its own mesh, " + shortName(v.Mesh)
	}
	s := Section{Title: "As called from " + whose, Text: "Host " + v.Host + "."}
	all := usedByAll(v.ByHand)
	switch {
	case all != nil:
		s.Text += " " + byHandSentence(all)
		s.Header, s.Rows, s.Refs = routeTable(all.Routes, v.Host)
	case len(v.Routes) == 0:
		s.Text += " Requests go to it unchanged."
	default:
		if len(v.Connections) > 0 {
			s.Text += fmt.Sprintf(" On %s %s proxies see connections, which no route takes.", verb(len(v.Connections), "port", "ports"), numbers(v.Connections))
		}
		s.Header, s.Rows, s.Refs = routeTable(v.Routes, v.Host)
	}
	if all == nil && len(v.ByHand) > 0 {
		s.Text += " Not for all callers: see below."
	}
	sections := []Section{s}
	for i := range v.ByHand {
		if all == nil {
			sections = append(sections, v.ByHand[i].section(v.Host))
		}
	}
	if settings := v.settings(); len(settings.Rows) > 0 {
		sections = append(sections, settings)
	}
	if len(v.Subsets) > 0 && v.Own {
		subsets := Section{Title: "Subsets", Header: []string{"SUBSET", "PODS"}}
		for _, each := range v.Subsets {
			subsets.Rows = append(subsets.Rows, []string{each.Name, labels(each.Labels)})
		}
		sections = append(sections, subsets)
	}
	return sections
}

// routeTable is the table of routes for requests to a host.
func routeTable(routes []Route, host string) (header []string, rows [][]string, refs []snapshot.Ref) {
	for _, r := range routes {
		rows = append(rows, r.rows(host)...)
		refs = append(refs, r.refs()...)
	}
	return []string{"REQUESTS", "GO TO", "CLUSTER", "SUBSET", "SHARE", "ENDPOINTS", "BY"}, rows, refs
}

// rows of the route table; a route with several targets has one row for each, and one
// for each that is missing.
func (r Route) rows(host string) [][]string {
	var rows [][]string
	for _, t := range r.Targets {
		share := snapshot.Percent(t.Share)
		if t.Asked != nil {
			share += ", not " + snapshot.Percent(*t.Asked)
		}
		rows = append(rows, []string{above, fmt.Sprintf("%s:%d", t.Host, t.Port), t.Cluster, t.Subset, share, t.endpoints(), above})
	}
	switch {
	case r.Instead != "":
		rows = [][]string{{above, r.Instead, "", "", "", "", above}}
	case len(rows) == 0:
		rows = append(rows, []string{above, host, "", "", "100%", "", above})
	}
	for _, m := range r.Missing {
		share := "0%"
		if m.Asked > 0 {
			share += ", not " + snapshot.Percent(m.Asked)
		}
		rows = append(rows, []string{above, m.Name + " (missing)", m.Cluster, m.Subset, share, "", above})
	}
	rows[0][0], rows[0][6] = r.Match, ""
	switch {
	case r.TargetsOrigin != nil:
		rows[0][6] = shortName(r.TargetsOrigin.Ref)
	case r.Instead != "" && len(r.Policies) > 0:
		rows[0][6] = shortName(r.Policies[0])
	}
	return rows
}

// where names a target in a row of its own.
func (t Target) where() string {
	if t.Subset == "" {
		return fmt.Sprintf("%s:%d", t.Host, t.Port)
	}
	return fmt.Sprintf("%s:%d, %s", t.Host, t.Port, t.Subset)
}

// settings of all routes, and of the view as a whole.
func (v View) settings() Section {
	s := Section{Title: "Settings from " + shortName(v.Mesh), Header: []string{"REQUESTS", "SETTING", "VALUE", "BY"}}
	add := func(match string, list []Setting) {
		for _, each := range list {
			s.Rows = append(s.Rows, []string{match, each.Name, each.Value, shortName(each.Origin.Ref)})
		}
	}
	routes := v.Routes
	if all := usedByAll(v.ByHand); all != nil {
		routes = all.Routes
	} else {
		for _, t := range v.ByHand {
			if !t.Undecided {
				routes = slices.Concat(routes, t.Routes)
			}
		}
	}
	for _, r := range routes {
		add(r.Match, r.Settings)
		for _, t := range r.Targets {
			if t.Headers != "" {
				s.Rows = append(s.Rows, []string{r.Match, "headers to " + t.where(), t.Headers, shortName(r.TargetsOrigin.Ref)})
			}
		}
	}
	add("any", v.Settings)
	return s
}
