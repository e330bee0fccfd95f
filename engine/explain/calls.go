package explain

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// routesOf are the routes that requests of a workload to a Destination may take: those of what users wrote, if they are used.
func (x describer) routesOf(o *discoveryv1.Workload, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) []Route {
	q := query{Index: x.Index, mesh: mesh, called: d.Ref, workload: o}
	if port := q.choosePort(d); port != nil && x.outside.byHand[mesh] != nil {
		of := q.hostQuery(d)
		of.Traffic = trafficOf(d.Mesh.Dialect, port)
		if first := q.handRoutes(of, hasRoutes(mesh, x.unwritten.viewsOf(d))); first != nil && first.known {
			var table HandTable
			fill(&table, &q, first.HandRoutes, of)
			return table.Routes
		}
	}
	var out []Route
	for _, v := range x.unwritten.viewsOf(d) {
		if v.Mesh != mesh {
			continue
		}
		for _, r := range v.Routes {
			if takes(r.Match, o) {
				out = append(out, x.route(r))
			}
		}
	}
	return out
}

// takes reports whether a route is open to the requests of a workload, as far
// as that is a matter of who sends them.
func takes(m snapshot.Match, o *discoveryv1.Workload) bool {
	k := o.Spec.Kubernetes
	if k == nil {
		return m.SourceNamespace == "" && len(m.SourceLabels) == 0
	}
	return (m.SourceNamespace == "" || m.SourceNamespace == k.Controller.Namespace) && hasLabels(k.PodLabels, m.SourceLabels)
}

// routesSection shows how calls are routed; those that no policy routes are left out.
func (o *Workload) routesSection() []Section {
	if o.Gateway {
		return []Section{{Title: "How its calls are routed", Text: "It is a gateway: VirtualServices and routes that are bound to its Gateways send requests on, and no TrafficPolicy does. Ask meshctl why."}}
	}
	s := Section{Title: "How its calls are routed", Header: []string{"CALLS TO", "REQUESTS", "GO TO", "CLUSTER", "SUBSET", "SHARE", "ENDPOINTS", "BY"}}
	for _, c := range o.Calls {
		first := true
		for _, r := range c.Routes {
			for i, row := range r.rows(c.Host) {
				host := above
				if first {
					host, first = c.Host, false
				}
				s.Rows = append(s.Rows, append([]string{host}, row...))
				s.Refs = append(s.Refs, r.refs()[i])
			}
		}
	}
	if len(s.Rows) == 0 {
		return nil
	}
	return []Section{s}
}

// refs are what the rows of a route are about.
func (r Route) refs() []snapshot.Ref {
	refs := make([]snapshot.Ref, 0, len(r.Targets)+len(r.Missing))
	for _, t := range r.Targets {
		refs = append(refs, t.Destination)
	}
	if len(refs) == 0 {
		refs = append(refs, snapshot.Ref{})
	}
	for range r.Missing {
		refs = append(refs, snapshot.Ref{})
	}
	return refs
}
