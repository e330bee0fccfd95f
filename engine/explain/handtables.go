package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// HandTable is what callers get of an object that users wrote, in place of the routes of policies.
type HandTable struct {
	// By is the object; where the mesh makes one of several, it is the oldest.
	By snapshot.Ref `json:"by"`
	// Namespaces are those of the callers, ascending; none if it is for all callers of the mesh.
	Namespaces []string `json:"namespaces,omitempty"`
	// Undecided: the mesh uses the older of it and what is generated, and which that is, is not known without their creation times.
	Undecided bool `json:"undecided,omitempty"`
	// Port is that of the requests.
	Port   uint32  `json:"port"`
	Routes []Route `json:"routes"`
	// planned are the same as Routes, but for what is not followed.
	planned []*snapshot.Route
}

// handTables are the objects that users wrote which route the requests of callers in a mesh to a Destination, as why finds them: one
// for each group of callers with the same. Gateways are no such callers.
func handTables(x *Index, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) []HandTable {
	hand := x.outside.byHand[mesh]
	q := query{Index: x, mesh: mesh, called: d.Ref}
	port := q.choosePort(d)
	if hand == nil || port == nil || !reaches(mesh, d) {
		return nil
	}
	of := q.hostQuery(d)
	if of.Traffic = trafficOf(d.Mesh.Dialect, port); of.Traffic == snapshot.Requests && len(hand.Routes(of)) == 0 {
		return nil
	}
	generated := hasRoutes(mesh, x.unwritten.viewsOf(d))
	var out []HandTable
	var rest bool
	for _, ref := range sortedRefs(x.workloads) {
		q.workload = x.workloads[ref]
		if k := q.workload.Spec.Kubernetes; k == nil || k.Gateway || x.meshOf(q.workload) != mesh {
			continue
		}
		first := q.handRoutes(of, generated)
		if first == nil {
			rest = true
			continue
		}
		at := slices.IndexFunc(out, func(t HandTable) bool { return t.By == first.Ref && t.Undecided == !first.known })
		if at < 0 {
			at = len(out)
			table := HandTable{By: first.Ref, Undecided: !first.known, Port: port.Port, Routes: []Route{}}
			fill(&table, &q, first.HandRoutes, of)
			out = append(out, table)
		}
		if namespace := q.workload.Spec.Kubernetes.Controller.Namespace; !slices.Contains(out[at].Namespaces, namespace) {
			out[at].Namespaces = append(out[at].Namespaces, namespace)
		}
	}
	for i := range out {
		slices.Sort(out[i].Namespaces)
	}
	slices.SortStableFunc(out, func(a, b HandTable) int { return slices.Compare(a.Namespaces, b.Namespaces) })
	if len(out) == 1 && !rest {
		out[0].Namespaces = nil
	}
	return out
}

// hasRoutes reports whether some views have routes for the callers of a mesh.
func hasRoutes(mesh *snapshot.MeshPlan, views []*snapshot.View) bool {
	return slices.ContainsFunc(views, func(v *snapshot.View) bool { return v.Mesh == mesh && len(v.Routes) > 0 })
}

// fill describes the routes of an object, and what becomes of what none of them takes.
func fill(t *HandTable, q *query, from *snapshot.HandRoutes, of *snapshot.HostQuery) {
	for i := range from.Routes {
		r := &from.Routes[i]
		route := Route{Match: matchText(r.Match) + prefixed(", depending on ", r.MatchUnknown), Policies: r.Action.Policies}
		if r.ActionUnknown == "" && r.Ends == "" {
			planned := &snapshot.Route{Match: r.Match, Action: q.resolved(r.Action, of)}
			match := route.Match
			route = describing(q.Index).route(planned)
			route.Match = match
			t.planned = append(t.planned, planned)
		}
		if r.ActionUnknown != "" {
			route.Instead = "not followed: " + r.ActionUnknown
		} else if r.Ends != "" {
			route.Instead = "none: " + r.Ends
		}
		t.Routes = append(t.Routes, route)
		if isAll(r) {
			return
		}
	}
	if of.Traffic == snapshot.Requests {
		t.Routes = append(t.Routes, Route{Match: "others", Instead: "none: answered with status 404"})
	}
}

// isAll reports whether a route takes all requests.
func isAll(r *snapshot.HandRoute) bool {
	m := r.Match.Request
	if m != nil && m.Uri != nil && m.Uri.Prefix == "/" && len(m.Headers)+len(m.QueryParameters) == 0 && m.Method == "" {
		m = nil
	}
	return r.MatchUnknown == "" && matchText(snapshot.Match{Request: m, SourceNamespace: r.Match.SourceNamespace, SourceLabels: r.Match.SourceLabels}) == anyRequest
}

// usedByAll is the table for all callers of a mesh, if there is one that applies for certain.
func usedByAll(tables []HandTable) *HandTable {
	if len(tables) == 1 && tables[0].Namespaces == nil && !tables[0].Undecided {
		return &tables[0]
	}
	return nil
}

// section is the table of one group of callers.
func (t *HandTable) section(host string) Section {
	s := Section{Title: "As called from namespace " + firstOf(t.Namespaces), Text: byHandSentence(t)}
	if len(t.Namespaces) == 0 {
		s.Title = "As called from all namespaces"
	}
	if t.Undecided {
		return s
	}
	s.Header, s.Rows, s.Refs = routeTable(t.Routes, host)
	return s
}

// byHandSentence says which object it is.
func byHandSentence(t *HandTable) string {
	name := t.By.String() + ", which users wrote"
	if t.Undecided {
		return name + ", also routes them: the mesh uses the older of it and the generated one, and which that is, is not known without their creation times."
	}
	return name + ", routes them: routes of policies do not apply."
}
