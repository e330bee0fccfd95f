package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// viewLine is what callers of one mesh get for some requests: a setting, or where they go.
type viewLine struct {
	// requests are those that a route is for; empty for settings of all.
	requests string
	// setting is empty for where they go.
	setting string
	value   string
}

// about reports whether two lines are about the same requests and setting.
func (l viewLine) about(o viewLine) bool { return l.requests == o.requests && l.setting == o.setting }

func (l viewLine) kind() EffectKind {
	if l.setting == "" {
		return EffectRoute
	}
	return EffectSetting
}

// what says in a few words what the line is about.
func (l viewLine) what() string {
	if l.requests == "" || l.setting == "" {
		return l.requests + l.setting
	}
	return l.requests + ": " + l.setting
}

// views compares the routes and settings as the callers of each mesh get them. What changes in
// the same way for several meshes is one effect.
func (e *effects) views(ref snapshot.Ref, was, is *snapshot.DestinationPlan) {
	type change struct {
		kind                EffectKind
		what, before, after string
	}
	from := map[change][]snapshot.Ref{}
	var order []change
	meshes := 0
	for _, mesh := range callers(is) {
		if !slices.Contains(callers(was), mesh) {
			continue // it is new there
		}
		meshes++
		before, after := describing(e.before).viewLines(was, mesh), describing(e.after).viewLines(is, mesh)
		for _, line := range mergeLines(before, after) {
			old, now := valueOf(before, line), valueOf(after, line)
			if old == now {
				continue
			}
			c := change{line.kind(), line.what(), old, now}
			if from[c] == nil {
				order = append(order, c)
			}
			from[c] = append(from[c], mesh)
		}
	}
	for _, c := range order {
		effect := Effect{Kind: c.kind, On: ref, From: from[c], What: c.what, Before: c.before, After: c.after}
		if len(effect.From) == meshes {
			effect.From = nil
		}
		e.add(effect)
	}
}

// callers are the meshes that know a service, its own first.
func callers(d *snapshot.DestinationPlan) []snapshot.Ref {
	return append([]snapshot.Ref{d.MeshRef()}, federatedTo(d)...)
}

// unchanged is where requests go if nothing routes them.
const unchanged = "100% to the service itself"

// viewLines are what callers of a mesh get, one for each route and setting.
func (x describer) viewLines(d *snapshot.DestinationPlan, mesh snapshot.Ref) []viewLine {
	var out []viewLine
	for _, v := range x.unwritten.viewsOf(d) {
		if v.Mesh.Ref != mesh {
			continue
		}
		// What users wrote for all callers does not change with policies.
		if usedByAll(handTables(x.Index, v.Mesh, d)) == nil {
			for _, r := range v.Routes {
				requests := requestsOf(r.Match)
				out = append(out, viewLine{requests: requests, value: x.targetsText(r)})
				for _, s := range actionSettings(r) {
					out = append(out, viewLine{requests, s.Name, s.Value})
				}
			}
		}
		for _, s := range viewSettings(d, v) {
			out = append(out, viewLine{setting: s.Name, value: s.Value})
		}
	}
	return out
}

// targetsText is where a route sends requests: "75% to reviews-bookinfo-cluster-1 (version-v1), ...".
func (x describer) targetsText(r *snapshot.Route) string {
	targets := x.route(r).Targets
	if len(targets) == 0 {
		return unchanged
	}
	parts := make([]string, 0, len(targets))
	for _, t := range targets {
		text := fmt.Sprintf("%s to %s", snapshot.Percent(t.Share), t.Host)
		if t.Destination.Kind == snapshot.Destination {
			text = fmt.Sprintf("%s to %s", snapshot.Percent(t.Share), t.Destination.Name)
		}
		if t.Subset != "" {
			text += " (" + t.Subset + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// mergeLines are the lines of both lists, each once, whatever their values.
func mergeLines(before, after []viewLine) []viewLine {
	out := slices.Clone(after)
	for _, line := range before {
		if !slices.ContainsFunc(after, line.about) {
			out = append(out, line)
		}
	}
	return out
}

// valueOf is the value of a line; what no route is for is done by the last one, which takes the rest.
func valueOf(lines []viewLine, wanted viewLine) string {
	rest := wanted
	if wanted.requests != "" {
		rest.requests = allRequests
	}
	for _, line := range []viewLine{wanted, rest} {
		if i := slices.IndexFunc(lines, line.about); i >= 0 {
			return lines[i].value
		}
	}
	if wanted.kind() == EffectRoute {
		return unchanged
	}
	return ""
}

// allRequests are those that a route without conditions is for.
const allRequests = "all requests"

func requestsOf(m snapshot.Match) string {
	if text := matchText(m); text != anyRequest {
		return "requests (" + text + ")"
	}
	return allRequests
}

// virtualDestination compares the order of failover.
func (e *effects) virtualDestination(ref snapshot.Ref, was, is *snapshot.VirtualDestinationPlan) {
	orders := func(p *snapshot.VirtualDestinationPlan) map[snapshot.Ref]string {
		out := map[snapshot.Ref]string{}
		if p != nil {
			for _, v := range p.Views {
				if order := orderText(virtualView(v).Targets); order != "" {
					out[v.Mesh.Ref] = order
				}
			}
		}
		return out
	}
	before, after := orders(was), orders(is)
	for _, mesh := range sortedRefs(union(before, after)) {
		if before[mesh] != after[mesh] {
			e.add(Effect{Kind: EffectRoute, On: ref, From: []snapshot.Ref{mesh}, What: "order of failover", Before: before[mesh], After: after[mesh], Harm: after[mesh] == ""})
		}
	}
}
