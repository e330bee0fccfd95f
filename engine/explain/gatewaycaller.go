package explain

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
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

// wayIn is how requests of a name may enter at a gateway.
type wayIn struct {
	*snapshot.GatewayEntry
	// host is nil if nothing is for the name there.
	host *snapshot.GatewayHost
}

func (w *wayIn) text() string {
	if w.host == nil || len(w.host.Of) == 0 {
		return fmt.Sprintf("nothing at port %d", w.Port)
	}
	names := make([]string, len(w.host.Of))
	for i, ref := range w.host.Of {
		names[i] = ref.String()
	}
	return firstOf(names) + " for " + w.host.Name + fmt.Sprintf(" at port %d", w.Port)
}

// routeAtGateway is the route that takes a request which enters the mesh through the callers, and is for a host. It sets the verdict
// where no route does, or where it is not known which one.
func (q *query) routeAtGateway(out *Why, of *snapshot.HostQuery) *snapshot.Route {
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	out.Verdict = Unknown
	if q.unread {
		out.Reason = "the callers are a gateway, which sends requests where the VirtualServices and routes say that are bound to its Gateways: they were not read"
		return nil
	}
	var entries []snapshot.GatewayEntry
	unknown := ""
	if hand != nil {
		entries, unknown = hand.AtGateway(&snapshot.PodQuery{Mesh: q.mesh, Namespace: k.Controller.Namespace, Pods: []map[string]string{k.PodLabels}}, of)
	}
	if unknown == "" {
		unknown = unreadAtGateways(q)
	}
	name, port := askedAt(q.request.Headers["host"])
	ways := waysIn(entries, name, port)
	if name == "" {
		ways = slices.DeleteFunc(ways, func(w wayIn) bool { return !w.host.Leads })
		if names := namesOf(ways); len(names) > 1 {
			out.Reason = "the callers are a gateway, where " + waysText(ways) + " route requests to " + of.Host + ": ask with the header host for one of them"
			return nil
		}
	}
	ways = likely(ways, of.Traffic)
	if len(ways) == 0 || ways[0].host == nil {
		out.Verdict, out.Reason = leadsNowhere(q, of.Host, name, unknown)
		return nil
	}
	return throughWays(q, out, ways, of)
}

// askedAt are the name and the port of a header host. Envoy looks at the name alone (IgnorePortInHostMatching).
func askedAt(header string) (name string, port uint32) {
	header = strings.ToLower(header)
	name, text, _ := strings.Cut(header, ":")
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return name, 0
	}
	return name, uint32(number)
}

// waysIn are those by which requests for a name enter, and through a port if one is asked for: the nearest at each port. Without a name,
// they are all.
func waysIn(entries []snapshot.GatewayEntry, name string, port uint32) (out []wayIn) {
	nearest := map[string]int{}
	for i := range entries {
		e := &entries[i]
		if port != 0 && e.Port != port {
			continue
		}
		if name == "" {
			for j := range e.Hosts {
				out = append(out, wayIn{e, &e.Hosts[j]})
			}
			continue
		}
		near := e.Nearness(name)
		at, found := nearest[e.Listens]
		switch {
		case near == 0, port == 0 && e.Traffic == snapshot.Connections && e.Names == nil: // nobody asks for a name there
		case !found:
			nearest[e.Listens] = len(out)
			out = append(out, wayIn{e, e.HostFor(name)})
		case near > out[at].Nearness(name):
			out[at] = wayIn{e, e.HostFor(name)}
		}
	}
	return out
}

// namesOf are the names of hosts, ascending.
func namesOf(ways []wayIn) (out []string) {
	for _, w := range ways {
		out = append(out, w.host.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// likely are the ways by which somebody enters who wants to be answered: those that have routes, and of these those that do not only
// redirect, and see what the service is asked for.
func likely(ways []wayIn, traffic snapshot.Traffic) []wayIn {
	for _, is := range []func(w wayIn) bool{
		func(w wayIn) bool { return w.host != nil },
		func(w wayIn) bool { return !w.host.Redirects },
		func(w wayIn) bool { return (w.Traffic == snapshot.Requests) == (traffic == snapshot.Requests) },
	} {
		if some := slices.DeleteFunc(slices.Clone(ways), func(w wayIn) bool { return !is(w) }); len(some) > 0 {
			ways = some
		}
		if len(ways) == 0 || ways[0].host == nil {
			return ways
		}
	}
	return ways
}

// throughWays is the route that takes a request, if it does the same by all ways.
func throughWays(q *query, out *Why, ways []wayIn, of *snapshot.HostQuery) *snapshot.Route {
	var route *snapshot.Route
	var answer Why
	for i := range ways {
		var one Why
		r := throughWay(q, &one, &ways[i], of)
		if i == 0 {
			route, answer = r, one
		} else if one.Verdict != answer.Verdict || one.Reason != answer.Reason || !reflect.DeepEqual(r, route) {
			out.Reason = "the callers are a gateway, where what becomes of such requests depends on the port at which they enter: " + waysText(ways) + "; ask with the header host as NAME:PORT"
			return nil
		}
	}
	out.Verdict, out.Reason = answer.Verdict, answer.Reason
	w := &ways[0]
	out.way = w
	if w.host.Redirects {
		return nil
	}
	asked, _ := askedAt(q.request.Headers["host"])
	if verdict, reason := refusedOnEntering(q, w, cmp.Or(asked, w.host.Name)); verdict != "" && out.Verdict == "" {
		out.Verdict, out.Reason = verdict, "the callers are a gateway, and "+reason
		return nil
	}
	out.Notes = append(out.Notes, "the callers are a gateway: "+decidesText(w.host)+" where requests go that enter there for "+w.host.Name+"; routes of TrafficPolicies are for sidecars")
	return route
}

// decidesText names the objects that route requests for a host at a gateway.
func decidesText(h *snapshot.GatewayHost) string {
	names := make([]string, len(h.Of))
	for i, ref := range h.Of {
		names[i] = byHandName(ref)
	}
	text := firstOf(names)
	if len(names) > 1 {
		return text + " together decide"
	}
	return text + " decides"
}

// throughWay is the route that takes a request by a way.
func throughWay(q *query, out *Why, w *wayIn, of *snapshot.HostQuery) *snapshot.Route {
	switch {
	case w.host.Redirects:
		out.Verdict, out.Reason = Unreachable, "the callers are a gateway, which redirects requests for "+w.host.Name+fmt.Sprintf(" at port %d to HTTPS (status 301)", w.Port)
		return nil
	case w.Traffic == snapshot.TLSConnections && of.Traffic == snapshot.Requests:
		out.Verdict, out.Reason = Unknown, "the callers are a gateway, where "+w.text()+" passes TLS on as it comes to a port for requests without TLS: what becomes of that is not known"
		return nil
	}
	entering := *of
	entering.Traffic = w.Traffic
	return q.takenBy(out, &snapshot.HandRoutes{Ref: w.host.Of[0], Routes: w.host.Routes}, &entering)
}

// waysText lists ways.
func waysText(ways []wayIn) string {
	var texts []string
	for i := range ways {
		if text := ways[i].text(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return firstOf(texts)
}

// unreadAtGateways says which kinds that lead from gateways to services could not be read; empty if all were.
func unreadAtGateways(q *query) string {
	c := q.outside.clusters[q.mesh.Cluster]
	if c == nil {
		return ""
	}
	denied := slices.DeleteFunc(slices.Clone(c.Denied), func(k snapshot.Kind) bool { return !decides(q.mesh.Dialect, k) })
	if len(denied) == 0 {
		return ""
	}
	return kindNames(denied) + ", which may lead there, could not be read"
}

// leadsNowhere says that nothing was found by which requests come from the callers to a host.
func leadsNowhere(q *query, host, asked, unknown string) (Verdict, string) {
	for i := range q.mesh.Gateways {
		if inventory.MatchLabels(q.mesh.Gateways[i].Selector, q.workload.Spec.Kubernetes.PodLabels) {
			return Unknown, "the callers are an east-west gateway, which passes on what callers of other clusters send: who is let in is decided by their identities; ask for these callers"
		}
	}
	if unknown != "" {
		return Unknown, "the callers are a gateway: " + unknown
	}
	if asked != "" {
		return Unreachable, "the callers are a gateway, and no VirtualService, route or Ingress that is bound to a Gateway of it is for " + asked + ": such requests end there (status 404, or no connection)"
	}
	return Unreachable, "the callers are a gateway, and no VirtualService, route or Ingress that is bound to a Gateway of it leads to " + host
}
