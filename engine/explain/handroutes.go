package explain

import (
	"cmp"
	"fmt"

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
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	if k == nil || hand == nil {
		return nil, false
	}
	list := hand.RoutesFor(of, k.Controller.Namespace)
	if len(list) == 0 {
		return nil, false
	}
	first := &list[0]
	switch applies, known := q.precedes(first, out.Host, generated); {
	case !known:
		out.Verdict = Unknown
		out.Reason = byHandName(first.Ref) + " also routes requests for " + out.Host + ", and the mesh uses the older of it and the generated one: which that is, is not known"
		return nil, false
	case !applies:
		return nil, false
	}
	for i := range first.Routes {
		r := &first.Routes[i]
		switch {
		case !takes(r.Match, q.workload) || !q.request.proxied().Matches(r.Match.Request):
			continue
		case r.MatchUnknown != "":
			out.Verdict, out.Reason = Unknown, byHandName(first.Ref)+" decides by "+r.MatchUnknown+" what it does with requests for "+out.Host
		case r.ActionUnknown != "":
			out.Verdict, out.Reason = Unknown, byHandName(first.Ref)+" takes requests for "+out.Host+": "+r.ActionUnknown
		default:
			return &snapshot.Route{Match: r.Match, Action: q.resolved(r.Action, of.Host)}, true
		}
		return nil, false
	}
	out.Verdict, out.Reason = Unreachable, byHandName(first.Ref)+" has no route for it: it is answered with status 404"
	return nil, false
}

// precedes reports whether an object that users wrote is used before the generated one for a host, if there is one.
func (q *query) precedes(first *snapshot.HandRoutes, host string, generated bool) (applies, known bool) {
	if !generated || first.First || first.Pattern {
		return !first.Pattern || !generated, true
	}
	ours := q.generatedFor(first.Ref, []string{host})
	if ours.Namespace == first.Ref.Namespace && ours.Name == first.Ref.Name {
		return true, true // it has the name that the generated one needs
	}
	since, known := q.created[ours]
	if !known {
		return false, false
	}
	mine := first.Ref.Name + "." + first.Ref.Namespace
	return cmp.Or(first.Created.Compare(since), cmp.Compare(mine, ours.Name+"."+ours.Namespace)) < 0, true
}

// resolved is an action with the Destinations of its targets; host is that of the request. A target without a port gets the only
// one of its service, or that of the request.
func (q *query) resolved(a *snapshot.Action, host string) *snapshot.Action {
	if a.Targets == nil {
		return a
	}
	out, targets := *a, *a.Targets
	targets.Value = nil
	for _, t := range a.Targets.Value {
		to := q.hosts(q.mesh, t.Host)
		if host == t.Host {
			to = []snapshot.Ref{q.called}
		}
		if len(to) > 0 {
			t.Destination = to[0]
		}
		if t.Port == 0 {
			t.Port = q.request.Port
			if of := q.destinations[t.Destination]; of != nil {
				if k := of.Destination.Spec.KubeService; k != nil && len(k.Ports) == 1 {
					t.Port = k.Ports[0].Port
				}
			}
		}
		targets.Value = append(targets.Value, t)
	}
	out.Targets = &targets
	return &out
}

// definesByHand reports whether an object that users wrote, and that the callers see, defines a subset.
func (q *query) definesByHand(d *snapshot.DestinationPlan, subset string) bool {
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	if k == nil || hand == nil {
		return false
	}
	_, found := hand.SubsetLabels(q.hostQuery(d), k.Controller.Namespace, subset)
	return found
}

// podsOfSubset are the ready endpoints of a subset, which generated objects or those that users wrote define, and its labels.
func (q *query) podsOfSubset(d *snapshot.DestinationPlan, subset string) (endpoints []discoveryv1.Endpoint, with map[string]string, unknown string) {
	with, found := subsetLabels(d, subset)
	if k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]; !found && k != nil && hand != nil {
		with, found = hand.SubsetLabels(q.hostQuery(d), k.Controller.Namespace, subset)
	}
	if !found {
		return nil, nil, fmt.Sprintf("no DestinationRule that the callers see defines subset %s of %s", subset, hostFrom(q.mesh, d))
	}
	return endpointsOf(d, with), with, ""
}
