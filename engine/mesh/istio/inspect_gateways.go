package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// AtGateway implements snapshot.ByHand: what istiod makes of Gateways, of listeners of the Gateway API and of Ingresses for some pods,
// and of what is bound to these (Istio, buildGatewayHTTPRouteConfig).
func (h *handWritten) AtGateway(gateway *snapshot.PodQuery, to *snapshot.HostQuery) (out []snapshot.GatewayEntry, unknown string) {
	in := &ways{h}
	services := in.servicesOf(gateway)
	servers := serversAt(in.gatewaysAt(gateway, services), services)
	x := &entries{handWritten: h, gateway: gateway, to: to, bound: in.boundFor(gateway), taken: map[string]bool{}}
	plain := map[string]*snapshot.GatewayEntry{}
	var order []string
	for i := range servers {
		s := &servers[i]
		one := snapshot.GatewayEntry{Port: s.Port.GetNumber(), Listens: s.listens}
		switch {
		case s.isPlainHTTP():
			if plain[s.listens] == nil {
				plain[s.listens], order = &one, append(order, s.listens)
			}
			x.addRequests(plain[s.listens], s)
		case s.endsHTTPS():
			one.Names = s.names()
			x.addRequests(&one, s)
			out = append(out, one)
		case s.passes():
			one.Traffic, one.Names = snapshot.TLSConnections, []string{}
			x.addPassed(&one, s)
			out = append(out, one)
		default:
			one.Traffic = snapshot.Connections
			if s.Tls != nil {
				one.Names = s.names()
			}
			x.addConnections(&one, s)
			out = append(out, one)
		}
	}
	for _, port := range order {
		out = append(out, *plain[port])
	}
	for i := range out {
		for j := range out[i].Hosts {
			out[i].Hosts[j].Routes = lastCatchAlls(out[i].Hosts[j].Routes)
		}
	}
	return out, in.unknownAt(gateway, to)
}

// entries collects what enters at pods.
type entries struct {
	*handWritten
	gateway *snapshot.PodQuery
	to      *snapshot.HostQuery
	bound   []*boundRoutes
	// taken are the names that are passed on at a port.
	taken map[string]bool
}

// boundFor are the VirtualServices that pods see, in the order in which they are used: those for their namespace alone first (Istio,
// VirtualServicesForGateway).
func (h *ways) boundFor(gateway *snapshot.PodQuery) (out []*boundRoutes) {
	rank := map[*boundRoutes]int{}
	for _, b := range h.boundTo(gateway.Mesh) {
		to := (handWrittenObject{ref: snapshot.Ref{Kind: snapshot.VirtualService, Namespace: b.namespace}, exportTo: b.exportTo}).seenBy(gateway.Mesh)
		if !to.includes(gateway.Namespace) {
			continue
		}
		isOwn := b.namespace == gateway.Namespace
		switch {
		case !to.all && isOwn:
			rank[b] = 0
		case !to.all:
			rank[b] = 1
		case b.attached && isOwn:
			rank[b] = 2
		default:
			rank[b] = 3
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b *boundRoutes) int { return cmp.Compare(rank[a], rank[b]) })
	return out
}

// sharedHosts are the hosts that both a VirtualService and a server have: of two of which one includes the other, the narrower one.
// Those of a server may be for VirtualServices of one namespace.
func (s *gatewayServer) sharedHosts(b *boundRoutes) (out []string) {
	for _, text := range s.hosts {
		namespace, host, isQualified := strings.Cut(text, "/")
		if !isQualified {
			host = namespace
		} else if namespace != allNamespaces && namespace != b.namespace {
			continue
		}
		out = append(out, intersection(b.hosts, []string{host})...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addRequests adds the routes at a server for requests.
func (x *entries) addRequests(to *snapshot.GatewayEntry, s *gatewayServer) {
	for _, b := range x.bound {
		if !slices.Contains(b.gateways, s.gateway) {
			continue
		}
		hosts := s.sharedHosts(b)
		if len(hosts) == 0 {
			continue
		}
		routes := x.routesAt(b, s)
		if len(routes) == 0 {
			continue
		}
		for _, host := range hosts {
			x.add(to, host, b, routes, s.Tls.GetHttpsRedirect())
		}
	}
	if !s.Tls.GetHttpsRedirect() {
		return
	}
	for _, host := range s.names() {
		if i := slices.IndexFunc(to.Hosts, func(h snapshot.GatewayHost) bool { return h.Name == host }); i >= 0 {
			to.Hosts[i].Redirects = true
		} else {
			to.Hosts = append(to.Hosts, snapshot.GatewayHost{Name: host, Redirects: true})
		}
	}
}

// add adds routes for a host.
func (x *entries) add(to *snapshot.GatewayEntry, host string, b *boundRoutes, routes []snapshot.HandRoute, redirects bool) {
	i := slices.IndexFunc(to.Hosts, func(h snapshot.GatewayHost) bool { return h.Name == host })
	if i < 0 {
		i = len(to.Hosts)
		to.Hosts = append(to.Hosts, snapshot.GatewayHost{Name: host})
	}
	one := &to.Hosts[i]
	one.Redirects = one.Redirects || redirects
	for _, r := range routes {
		if ref := r.Action.Policies[0]; !slices.Contains(one.Of, ref) {
			one.Of = append(one.Of, ref)
		}
		one.Leads = one.Leads || r.Action.Targets != nil && slices.ContainsFunc(r.Action.Targets.Value, func(t snapshot.Target) bool { return t.Host == x.to.Host })
	}
	if !slices.Contains(one.Of, b.ref) && len(b.http) == 0 {
		one.Of = append(one.Of, b.ref)
	}
	one.Routes = append(one.Routes, routes...)
}

// routesAt are those of a VirtualService at a server, up to the first that takes all requests (Istio,
// BuildHTTPRoutesForVirtualService).
func (x *entries) routesAt(b *boundRoutes, s *gatewayServer) (out []snapshot.HandRoute) {
	for _, r := range b.http {
		one := snapshot.HandRoute{ActionUnknown: r.unknown}
		x.act(&one, r)
		matches := r.Match
		if len(matches) == 0 {
			matches = []*networking.HTTPMatchRequest{{}}
		}
		for _, m := range matches {
			if len(m.Gateways) > 0 && !slices.ContainsFunc(m.Gateways, func(name string) bool { return boundName(name, r.ref.Namespace) == s.gateway }) ||
				m.Port != 0 && m.Port != s.Port.GetNumber() || !isFromPods(m, x.gateway) {
				continue
			}
			one.Match, one.MatchUnknown = b.matchOf(m)
			one.Match.SourceNamespace, one.Match.SourceLabels = "", nil
			out = append(out, one)
			if takesAll(&one) {
				return out
			}
		}
	}
	return out
}

// isFromPods reports whether a match is for what pods send. Where it names gateways, nothing else is asked about them (Istio,
// sourceMatchHTTP).
func isFromPods(m *networking.HTTPMatchRequest, pods *snapshot.PodQuery) bool {
	return len(m.Gateways) > 0 || (m.SourceNamespace == "" || m.SourceNamespace == pods.Namespace) && inventory.MatchLabels(m.SourceLabels, pods.Pods[0])
}

// takesAll reports whether a route takes all requests (Istio, IsCatchAllRoute).
func takesAll(r *snapshot.HandRoute) bool {
	m := r.Match.Request
	if m == nil {
		return r.MatchUnknown == ""
	}
	isAnyPath := m.Uri == nil || m.Uri.Prefix == "/" || m.Uri.Regex == ".*" || *m.Uri == (commonv1.StringMatch{IgnoreCase: m.Uri.IgnoreCase})
	return r.MatchUnknown == "" && isAnyPath && m.Method == "" && len(m.Headers)+len(m.QueryParameters) == 0
}

// lastCatchAlls puts the routes that take all requests behind the others (Istio, SortVHostRoutes).
func lastCatchAlls(routes []snapshot.HandRoute) []snapshot.HandRoute {
	slices.SortStableFunc(routes, func(a, b snapshot.HandRoute) int { return order(takesAll(&a), takesAll(&b)) })
	return routes
}

// addConnections adds where a server that reads no requests sends connections: where the first route says that is for it (Istio,
// buildGatewayNetworkFiltersFromTCPRoutes).
func (x *entries) addConnections(to *snapshot.GatewayEntry, s *gatewayServer) {
	for _, b := range x.bound {
		if !slices.Contains(b.gateways, s.gateway) || len(s.sharedHosts(b)) == 0 {
			continue
		}
		tcp := b.tcp
		if len(tcp) == 0 && b.attached { // of TLSRoutes, where TLS ends at the gateway
			for _, r := range b.tls {
				tcp = append(tcp, &networking.TCPRoute{Route: r.Route})
			}
		}
		for _, r := range tcp {
			if len(r.Route) == 0 || len(r.Match) > 0 && !slices.ContainsFunc(r.Match, func(m *networking.L4MatchAttributes) bool {
				return x.isAt(m.Port, m.Gateways, b, s)
			}) {
				continue
			}
			routes := x.connectionRoutes([]*networking.TCPRoute{{Route: r.Route}}, nil, b.ref, &snapshot.HostQuery{})
			x.add(to, allNamespaces, b, routes, false)
			return
		}
	}
}

// addPassed adds where a server passes TLS on, by the name that callers ask for (Istio, buildGatewayNetworkFiltersFromTLSRoutes).
func (x *entries) addPassed(to *snapshot.GatewayEntry, s *gatewayServer) {
	for _, b := range x.bound {
		if !slices.Contains(b.gateways, s.gateway) || len(s.sharedHosts(b)) == 0 {
			continue
		}
		for _, r := range b.tls {
			for _, m := range r.Match {
				if len(r.Route) == 0 || !x.isAt(m.Port, m.Gateways, b, s) || !claim(x.taken, s.listens, m.SniHosts) {
					continue
				}
				routes := x.connectionRoutes([]*networking.TCPRoute{{Route: r.Route}}, nil, b.ref, &snapshot.HostQuery{})
				for _, name := range m.SniHosts {
					name = strings.ToLower(name)
					x.add(to, name, b, routes, false)
					to.Names = append(to.Names, name)
				}
			}
		}
	}
}

func (x *entries) isAt(port uint32, gateways []string, b *boundRoutes, s *gatewayServer) bool {
	return (port == 0 || port == s.Port.GetNumber()) &&
		(len(gateways) == 0 || slices.ContainsFunc(gateways, func(name string) bool { return boundName(name, b.namespace) == s.gateway }))
}

// unknownAt says why Gateways of the Gateway API that may be for pods, and may lead to a host, are not followed; empty if none is so.
func (h *ways) unknownAt(gateway *snapshot.PodQuery, to *snapshot.HostQuery) string {
	name := gateway.Pods[0][gatewayName]
	for o := range snapshot.Each[*gatewayv1.Gateway](h.from.OfMeshes[snapshot.KubeGateway]) {
		if o.Namespace != gateway.Namespace || !h.reads(gateway.Mesh, o) || !h.isNamedBy(o, gateway) {
			continue
		}
		ref := snapshot.Ref{Kind: snapshot.KubeGateway, Cluster: h.from.Name, Namespace: o.Namespace, Name: o.Name}
		services, _ := servicesOfGateway(o)
		switch {
		case !h.controls(o):
			return fmt.Sprintf("%s of class %s may lead to %s from there, and is not followed, as it is not known which controller makes gateways of that class", ref, o.Spec.GatewayClassName, to.Host)
		case o.Name == name && !slices.ContainsFunc(h.servicesOf(gateway), func(s *corev1.Service) bool { return slices.Contains(services, s.Name) }):
			return fmt.Sprintf("Service %s/%s, by which Istio finds the pods of %s, was not found", o.Namespace, firstText(services), ref)
		}
		name = ""
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("Gateway %s/%s/%s, for which these pods were deployed, was not found", h.from.Name, gateway.Namespace, name)
}

func firstText(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// isNamedBy reports whether a Gateway is for pods, if it is for any.
func (h *ways) isNamedBy(o *gatewayv1.Gateway, pods *snapshot.PodQuery) bool {
	names, managed := servicesOfGateway(o)
	if managed {
		return pods.Pods[0][gatewayName] == o.Name
	}
	for _, s := range h.servicesOf(pods) {
		if slices.Contains(names, s.Name) {
			return true
		}
	}
	return false
}

// boundName is a gateway of a VirtualService as NAMESPACE/NAME (Istio, resolveGatewayName).
func boundName(name, namespace string) string {
	if before, after, isQualified := strings.Cut(name, "/"); isQualified {
		if before == ownNamespace {
			before = namespace
		}
		return before + "/" + after
	}
	name, rest, isFull := strings.Cut(name, ".")
	if isFull {
		namespace, _, _ = strings.Cut(rest, ".")
	}
	return namespace + "/" + name
}
