package explain

import (
	"cmp"
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// hostQuery asks about the name of a Destination as the callers know it.
func (q *query) hostQuery(d *snapshot.DestinationPlan) *snapshot.HostQuery {
	of := &snapshot.HostQuery{Host: hostFrom(q.mesh, d), Mesh: q.mesh, Home: q.mesh.Namespace, Port: q.request.Port}
	if k := d.Destination.Spec.KubeService; k != nil && q.mesh.Ref == d.Mesh.Ref {
		of.Home = k.Ref.Namespace
	}
	return of
}

// routeByHand is the route of an object that users wrote which takes the request instead of the generated ones: false if none does
// that. It sets the verdict where the request takes no such route, or where it is not known which one.
func (q *query) routeByHand(out *Why, of *snapshot.HostQuery, generated bool) (*snapshot.Route, bool) {
	first := q.handRoutes(of, generated)
	switch {
	case first == nil:
		return nil, false
	case !first.known:
		out.Verdict = Unknown
		out.Reason = byHandName(first.Ref) + " also routes requests for " + out.Host + ", and the mesh uses the older of it and the generated one: which that is, is not known without their creation times"
		return nil, false
	}
	route := q.takenBy(out, first.HandRoutes, of)
	return route, route != nil
}

// takenBy is the route of an object that takes the request. It sets the verdict where none does, or where it is not known which one.
func (q *query) takenBy(out *Why, by *snapshot.HandRoutes, of *snapshot.HostQuery) *snapshot.Route {
	for i := range by.Routes {
		r := &by.Routes[i]
		switch {
		case !takes(r.Match, q.workload) || of.Traffic == snapshot.Requests && !q.request.proxied().Matches(r.Match.Request):
			continue
		case r.MatchUnknown != "":
			out.Verdict, out.Reason = Unknown, byHandName(r.Action.Policies[0])+" decides by "+r.MatchUnknown+" what it does with requests for "+of.Host
		case r.ActionUnknown != "":
			out.Verdict, out.Reason = Unknown, byHandName(r.Action.Policies[0])+" takes requests for "+of.Host+": "+r.ActionUnknown
		case r.Ends != "":
			out.Verdict, out.Reason = Unreachable, byHandName(r.Action.Policies[0])+" "+r.Ends
		case isGateway(q.workload) && unported(q.Index, q.mesh, r.Action) != "":
			out.Verdict, out.Reason = Unknown, byHandName(r.Action.Policies[0])+" names no port of "+unported(q.Index, q.mesh, r.Action)+", which has several: that of the gateway is taken"
		default:
			return &snapshot.Route{Match: r.Match, Action: q.resolved(r.Action, of)}
		}
		return nil
	}
	if of.Traffic == snapshot.Requests {
		names := handNames(by)
		out.Verdict, out.Reason = Unreachable, firstOf(names)+verb(len(names), " has", " have")+" no route for it: it is answered with status 404"
	}
	return nil
}

// handNames are the objects that users wrote whose routes are tried, each once.
func handNames(by *snapshot.HandRoutes) []string {
	names := []string{byHandName(by.Ref)}
	for i := range by.Routes {
		if name := byHandName(by.Routes[i].Action.Policies[0]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// unported is a host of several ports of which an action names none; empty if there is none.
func unported(x *Index, mesh *snapshot.MeshPlan, a *snapshot.Action) string {
	for _, t := range a.Targets.Value {
		for _, ref := range x.hosts(mesh, nil, t.Host) {
			if d := x.destinations[ref]; t.Port == 0 && d != nil && d.Destination.Spec.KubeService != nil && len(d.Destination.Spec.KubeService.Ports) > 1 {
				return t.Host
			}
		}
	}
	return ""
}

// handRoutesFirst is the object that users wrote which routes the requests of callers for a host. Known is unset if the generated one
// may do that as well.
type handRoutesFirst struct {
	*snapshot.HandRoutes
	known bool
}

// handRoutes finds what users wrote that routes the requests of the callers instead of what is generated; nil if nothing does. What has
// no route for the callers is none for them, and the next one for the host applies (Istio, BuildHTTPRoutesForVirtualService).
func (q *query) handRoutes(of *snapshot.HostQuery, generated bool) *handRoutesFirst {
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	if k == nil || hand == nil {
		return nil
	}
	callers := q.callers()
	if q.byHandOfCallers() == nil {
		callers.Pods = nil // a generated object says what they import
	}
	list := hand.RoutesFor(of, callers)
	skipped := false
	for i := range list {
		if !slices.ContainsFunc(list[i].Routes, func(r snapshot.HandRoute) bool { return takes(r.Match, q.workload) }) {
			skipped = true
			continue
		}
		if skipped && list[i].Pattern {
			return nil // patterns are only for hosts that nothing nearer is for, with or without a route for the callers
		}
		switch applies, known := q.precedes(&list[i], of.Host, generated && of.Traffic == snapshot.Requests); {
		case applies || !known:
			return &handRoutesFirst{&list[i], known}
		default:
			return nil
		}
	}
	return nil
}

// precedes reports whether an object that users wrote is used before the generated one for a host, if there is one.
func (q *query) precedes(first *snapshot.HandRoutes, host string, generated bool) (applies, known bool) {
	if !generated || first.Pattern {
		return !first.Pattern || !generated, true
	}
	ours := q.outside.hosts.find(first.As, []string{host})
	if generated := precedenceOf(q.Index, ours, q.workload.Spec.Kubernetes.Controller.Namespace); first.Precedence != generated {
		return first.Precedence < generated, true
	}
	since, known := q.created[ours]
	if !known {
		return false, false
	}
	return cmp.Or(first.Created.Compare(since), cmp.Compare(first.As.Name, ours.Name), cmp.Compare(first.As.Namespace, ours.Namespace)) < 0, true
}

// precedenceOf is that of a generated object for callers in a namespace.
func precedenceOf(x *Index, ref snapshot.Ref, callers string) snapshot.Precedence {
	for o := range x.state.Output.Objects {
		if o.Ref != ref {
			continue
		}
		spec, ok := o.Content.Spec.(interface{ GetExportTo() []string })
		switch {
		case !ok || len(spec.GetExportTo()) == 0 || slices.Contains(spec.GetExportTo(), "*"):
		case ref.Namespace == callers:
			return snapshot.OwnOnly
		default:
			return snapshot.ForSome
		}
	}
	return snapshot.ForAll
}

// resolved is an action with the Destinations of its targets. A target without a port gets that of the request, or the only one of its
// service if it is for connections or the caller is a gateway: of other services, sidecars do not know there which ports they have (Istio,
// GetDestinationCluster with the services of one listener).
func (q *query) resolved(a *snapshot.Action, of *snapshot.HostQuery) *snapshot.Action {
	if a.Targets == nil {
		return a
	}
	out, targets := *a, *a.Targets
	targets.Value = nil
	for _, t := range a.Targets.Value {
		to := q.hosts(q.mesh, q.workload, t.Host)
		if of.Host == t.Host {
			to = []snapshot.Ref{q.called}
		}
		if len(to) > 0 {
			t.Destination = to[0]
		}
		if t.Port == 0 {
			t.Port = q.request.Port
			if d := q.destinations[t.Destination]; d != nil && (of.Traffic != snapshot.Requests || isGateway(q.workload)) {
				if k := d.Destination.Spec.KubeService; k != nil && len(k.Ports) == 1 {
					t.Port = k.Ports[0].Port
				}
			}
		}
		targets.Value = append(targets.Value, t)
	}
	out.Targets = &targets
	return &out
}

// subsetByHand are the labels of a subset as an object defines it that users wrote, and that the callers use: not one that the generated
// object takes the place of.
func subsetByHand(q *query, d *snapshot.DestinationPlan, subset string) (labels map[string]string, found bool) {
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	if k == nil || hand == nil {
		return nil, false
	}
	of := q.hostQuery(d)
	if h, found := hand.ConnectionFor(of, q.callers(), subset); found && h.Place == snapshot.HandBehind && q.outside.connections[clusterHost{q.mesh.Cluster, of.Host}] {
		return nil, false
	}
	return hand.SubsetLabels(of, q.callers(), subset)
}

// podsOfSubset are the ready endpoints of a subset, which generated objects or those that users wrote define, and its labels.
func (q *query) podsOfSubset(d *snapshot.DestinationPlan, subset string) (endpoints []discoveryv1.Endpoint, with map[string]string, unknown string) {
	with, found := subsetLabels(q.unwritten.viewsOf(d), subset)
	if !found {
		with, found = subsetByHand(q, d, subset)
	}
	if !found {
		return nil, nil, fmt.Sprintf("no DestinationRule that the callers see defines subset %s of %s", subset, hostFrom(q.mesh, d))
	}
	return endpointsOf(d, with), with, ""
}
