package explain

import (
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// isGateway reports whether the pods of the callers are proxies by themselves. Routes for the mesh are none for them: they send
// requests where the VirtualServices and routes say that are bound to their Gateways (istio.io: VirtualService.gateways).
func isGateway(o *discoveryv1.Workload) bool {
	k := o.Spec.Kubernetes
	return k != nil && k.Gateway
}

// routeAtGateway is the route that takes a request which enters the mesh through the callers, and is for a host. It sets the verdict
// where no route does, or where it is not known which one.
func (q *query) routeAtGateway(out *Why, of *snapshot.HostQuery) *snapshot.Route {
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	out.Verdict = Unknown
	if q.unread {
		out.Reason = "the callers are a gateway, which sends requests where the VirtualServices say that are bound to its Gateways: they were not read"
		return nil
	}
	var list []snapshot.GatewayRoutes
	if hand != nil {
		list = hand.AtGateway(&snapshot.PodQuery{Mesh: q.mesh, Namespace: k.Controller.Namespace, Pods: []map[string]string{k.PodLabels}}, of)
	}
	asked := strings.ToLower(q.request.Headers["host"])
	candidates := slices.DeleteFunc(slices.Clone(list), func(r snapshot.GatewayRoutes) bool { return !r.Leads })
	if asked != "" {
		candidates = nearest(list, asked)
	}
	switch {
	case len(candidates) == 0:
		out.Reason = leadsNowhere(q, of.Host, asked)
		return nil
	case len(candidates) > 1 && asked == "":
		out.Reason = "the callers are a gateway, where " + gatewayRoutesText(candidates) + " route requests to " + of.Host + ": ask with the header host for one of them"
		return nil
	}
	first := &candidates[0]
	for i := range list {
		if other := &list[i]; other.Ref != first.Ref && (asked == "" && other.Shares(first) || asked != "" && len(candidates) > 1) {
			out.Reason = "the callers are a gateway, where " + gatewayRoutesText(append(candidates, *other)) + " route such requests: which of them takes one is not followed"
			return nil
		}
	}
	if first.Unknown != "" {
		out.Reason = "the callers are a gateway, where " + byHandName(first.Ref) + " " + first.Unknown
		return nil
	}
	out.Verdict = ""
	out.Notes = append(out.Notes, "the callers are a gateway: "+byHandName(first.Ref)+" decides where requests go that enter there for "+firstOf(first.Hosts)+"; routes of TrafficPolicies are for sidecars")
	entering := *of
	entering.Traffic = snapshot.Requests
	return q.takenBy(out, &first.HandRoutes, &entering)
}

// nearest are the routes that are for a host by the nearest name: gateways use no others for it (Envoy: VirtualHost.domains).
func nearest(list []snapshot.GatewayRoutes, host string) (out []snapshot.GatewayRoutes) {
	best := ""
	for i := range list {
		switch name := list[i].HostFor(host); {
		case name == "" || name != best && best != "" && (best == host || name != host && len(name) < len(best)):
		case name == best:
			out = append(out, list[i])
		default:
			best, out = name, []snapshot.GatewayRoutes{list[i]}
		}
	}
	return out
}

// leadsNowhere says that nothing was found by which requests come from the callers to a host.
func leadsNowhere(q *query, host, asked string) string {
	for i := range q.mesh.Gateways {
		if inventory.MatchLabels(q.mesh.Gateways[i].Selector, q.workload.Spec.Kubernetes.PodLabels) {
			return "the callers are an east-west gateway, which passes on what callers of other clusters send: who is let in is decided by their identities; ask for these callers"
		}
	}
	what := ""
	if asked != "" {
		what = "requests for " + asked + " "
	}
	return "the callers are a gateway, and no VirtualService or route that is bound to a Gateway of it leads " + what + "to " + host + "; whether something else does, such as an Ingress, is not read"
}

// gatewayRoutesText names objects, each once, with the hosts that it is for.
func gatewayRoutesText(list []snapshot.GatewayRoutes) string {
	var names []string
	for i := range list {
		if name := list[i].Ref.String() + prefixed(" for ", firstOf(list[i].Hosts)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return firstOf(names)
}
