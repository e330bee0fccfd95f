package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Answer is what a destination's page begins with.
type Answer struct {
	// Requests says where requests go that its own mesh sends.
	Requests string `json:"requests"`
	// Callers says who may call it, and how many of those who can reach it may not.
	Callers string `json:"callers"`
}

func (x describer) answer(d *snapshot.DestinationPlan, access *Access) Answer {
	return Answer{Requests: requestsAnswer(x.Index, d), Callers: x.callersAnswer(access)}
}

// requestsAnswer says where requests go, by what users wrote if that is for all callers of the mesh.
func requestsAnswer(x *Index, d *snapshot.DestinationPlan) string {
	if d.Mesh == nil {
		return describing(x).requestsText(d)
	}
	if all := usedByAll(handTables(x, d.Mesh, d)); all != nil {
		by := " (" + all.By.String() + ", which users wrote)"
		if len(all.planned) == 0 || len(all.planned) < len(all.Routes) {
			return "as " + all.By.String() + " has it, which users wrote: see below"
		}
		return describing(x).routesText(all.planned) + by
	}
	return describing(x).requestsText(d) + x.outside.alsoRouted(d)
}

// maxRules bounds the rules that an answer spells out.
const maxRules = 2

// requestsText says where requests go: "75% to reviews in cluster-1 (version-v1), ...".
func (x describer) requestsText(d *snapshot.DestinationPlan) string {
	texts := map[string]bool{}
	own := ""
	for _, v := range x.unwritten.viewsOf(d) {
		text := x.routesText(v.Routes)
		texts[text] = true
		if v.Mesh == d.Mesh {
			own = text
		}
	}
	switch {
	case own == "" && len(texts) == 0:
		return "to its own pods"
	case own == "":
		own = "to its own pods"
		texts[own] = true
	}
	if len(texts) > 1 {
		own += "; not the same for callers in other meshes, see below"
	}
	return own
}

func (x describer) routesText(routes []*snapshot.Route) string {
	var parts []string
	for i, r := range routes {
		if i == maxRules {
			parts = append(parts, snapshot.Count(len(routes)-i, "more rule")+" below")
			break
		}
		text := x.shortTargets(r)
		if match := matchText(r.Match); match != anyRequest {
			text = match + ": " + text
		} else if i > 0 {
			text = "others: " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "to its own pods"
	}
	return strings.Join(parts, "; ")
}

// shortTargets is where a route sends requests, by the names of the services.
func (x describer) shortTargets(r *snapshot.Route) string {
	route := x.route(r)
	if len(route.Targets) == 0 {
		return "to its own pods"
	}
	parts := make([]string, len(route.Targets))
	for i, t := range route.Targets {
		where := t.Host
		if d := x.destinations[t.Destination]; d != nil && d.Destination.Spec.KubeService != nil {
			ref := d.Destination.Spec.KubeService.Ref
			where = ref.Name + " in " + ref.ClusterName
		}
		if t.Subset != "" {
			where += " (" + t.Subset + ")"
		}
		parts[i] = snapshot.Percent(t.Share) + " to " + where
	}
	return strings.Join(parts, ", ")
}

// callersAnswer says who may call: "productpage-v1 only; 12 refused".
func (x describer) callersAnswer(a *Access) string {
	if a.unknown {
		return "not known: " + a.Ambient
	}
	if a.Default == Allow && len(a.ByHand)+len(a.SharedWith)+len(a.Denied)+len(a.DeniedBeside) == 0 {
		return "anyone" + prefixed("; ", a.NoProxy) + prefixed("; ", a.Ambient)
	}
	who := "nobody"
	switch n := len(a.Callers); {
	case a.Default == Allow && len(a.ByHand)+len(a.SharedWith) == 0 && n > 0:
		who = "anyone whom no policy denies"
	case n > 0 && a.Refused == 0:
		who = "all " + snapshot.Count(n, "workload") + " that can reach it"
	case n > 0:
		names := make([]string, n)
		for i, ref := range a.Callers {
			names[i] = x.callerName(ref)
		}
		who = firstOf(names) + " only"
	}
	if a.Refused > 0 {
		who += fmt.Sprintf("; %d refused", a.Refused)
	}
	return who + prefixed("; ", a.NoProxy) + prefixed("; ", a.Ambient)
}

// callerName is a workload's name where one cluster runs it, and else with its cluster.
func (x describer) callerName(ref snapshot.Ref) string {
	if o := x.workloads[ref]; o != nil && o.Spec.Kubernetes != nil {
		c := o.Spec.Kubernetes.Controller
		if len(x.state.Input.Clusters) > 1 {
			return c.Name + " in " + c.ClusterName
		}
		return c.Name
	}
	return ref.Name
}

// valuesWon lists, for each TrafficPolicy on a Destination, what it does there: "timeout 1s",
// "75% to reviews in cluster-1 (version-v1), ...". Each is said once, in the order of routes.
func (x describer) valuesWon(d *snapshot.DestinationPlan) map[snapshot.Ref][]string {
	won := map[snapshot.Ref][]string{}
	add := func(o snapshot.Origin, match, text string) {
		if match != anyRequest {
			text += " (" + match + ")"
		}
		if o.Ref.Kind == snapshot.TrafficPolicy && !slices.Contains(won[o.Ref], text) {
			won[o.Ref] = append(won[o.Ref], text)
		}
	}
	for _, v := range x.unwritten.viewsOf(d) {
		for _, r := range v.Routes {
			match := matchText(r.Match)
			if t := r.Action.Targets; t != nil {
				add(t.Origin, match, x.shortTargets(r))
			}
			for _, s := range actionSettings(r) {
				add(s.Origin, match, s.Name+" "+s.Value)
			}
		}
		for _, s := range viewSettings(d, v) {
			add(s.Origin, anyRequest, s.Name+" "+s.Value)
		}
	}
	return won
}

// does says what a policy does, on all of its targets or on which.
func (p *Policy) does() []string {
	on := map[string][]string{}
	var order []string
	accepted := 0
	for i := range p.Targets {
		t := &p.Targets[i]
		if len(t.Values) > 0 {
			accepted++
		}
		for _, value := range t.Values {
			if on[value] == nil {
				order = append(order, value)
			}
			on[value] = append(on[value], t.Destination.Name)
		}
	}
	for i, value := range order {
		if n := len(on[value]); n < accepted {
			order[i] += " (on " + firstOf(on[value]) + ")"
		}
	}
	return order
}

// asks is what a rule lets callers ask for: "GET /reviews port 9080"; empty for anything.
func (r *Rule) asks() string {
	return strings.Join(slices.DeleteFunc([]string{strings.Join(r.Methods, ","), strings.Join(r.Paths, ","), prefixed("port ", numbers(r.Ports)+numbers(r.PodPorts))},
		func(s string) bool { return s == "" }), " ")
}

// rulesOf is what an AccessPolicy allows or denies on a Destination: "anything by namespace bookinfo".
func rulesOf(policy snapshot.Ref, d *snapshot.DestinationPlan) (out []string) {
	for _, r := range rulesOn(d) {
		if r.Policy == policy || slices.Contains(r.With, policy) {
			out = append(out, "allows "+cmp.Or(r.asks(), "anything")+" by "+firstOf(r.Callers))
		}
	}
	for _, r := range deniedRules(d) {
		if r.Policy == policy {
			out = append(out, "denies "+cmp.Or(r.asks(), "anything")+" by "+firstOf(r.Callers))
		}
	}
	return out
}
