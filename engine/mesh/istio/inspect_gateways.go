package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// AtGateway implements snapshot.ByHand. A Gateway is for the pods that it selects in all namespaces (Istio, PushContext.mergeGateways),
// and a VirtualService for those of its hosts that a server of the Gateway has (buildGatewayHTTPRouteConfig).
func (h *handWritten) AtGateway(gateway *snapshot.PodQuery, to *snapshot.HostQuery) (out []snapshot.GatewayRoutes) {
	labels := gateway.Pods[0]
	servers := map[string][]*networking.Server{}
	for _, o := range h.gateways {
		if inRevision(gateway.Mesh, o) && inventory.MatchLabels(o.Spec.Selector, labels) {
			servers[o.Namespace+"/"+o.Name] = o.Spec.Servers
		}
	}
	for _, vs := range h.bound {
		if routes, applies := h.boundRoutes(vs, servers, gateway, to); applies {
			out = append(out, routes)
		}
	}
	name := labels[gatewayName]
	for _, a := range h.atGateways {
		if !a.of(gateway.Mesh) {
			continue
		}
		// Where the parent is no Gateway, or one for which Istio deploys no pods, it is not known which pods it is for.
		isKnown := a.name != "" && (name != "" || h.deploys(a.namespace, a.name))
		if isKnown && (a.name != name || a.namespace != gateway.Namespace) {
			continue
		}
		leads := slices.Contains(a.leads, to.Host) || slices.Contains(a.leads, "")
		if !isKnown && !leads {
			continue
		}
		routes := snapshot.GatewayRoutes{Hosts: a.hostnames, Leads: leads, Unknown: "routes requests as the listeners of the Gateway take them, which are not read"}
		if len(routes.Hosts) == 0 {
			routes.Hosts = []string{allNamespaces}
		}
		routes.Ref, routes.As = a.ref, a.ref
		out = append(out, routes)
	}
	return out
}

// deploys reports whether there are pods that Istio deployed for a Gateway of the Gateway API.
func (h *handWritten) deploys(namespace, gateway string) bool {
	return slices.ContainsFunc(h.from.Pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Labels[gatewayName] == gateway })
}

// boundRoutes are the routes of a VirtualService at pods for which some Gateways are, by name; false if it has none there.
func (h *handWritten) boundRoutes(vs *istionetworkingv1.VirtualService, servers map[string][]*networking.Server, gateway *snapshot.PodQuery, to *snapshot.HostQuery) (out snapshot.GatewayRoutes, applies bool) {
	ref := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: h.from.Name, Namespace: vs.Namespace, Name: vs.Name}
	out.Ref, out.As, out.Created = ref, ref, vs.CreationTimestamp.Time
	if seen := (handWrittenObject{ref: ref, exportTo: vs.Spec.ExportTo, revisioned: revisionedOf(vs)}).seenBy(gateway.Mesh); !seen.includes(gateway.Namespace) {
		return out, false
	}
	var names []string
	var ports []uint32
	redirects, takes := true, false
	for _, bound := range vs.Spec.Gateways {
		name := boundName(bound, vs.Namespace)
		for _, s := range servers[name] {
			hosts := h.sharedHosts(vs, name, s)
			if len(hosts) == 0 {
				continue
			}
			takes, names, ports = true, append(names, name), append(ports, s.Port.GetNumber())
			redirects = redirects && s.Tls.GetHttpsRedirect()
			out.Hosts = append(out.Hosts, hosts...)
		}
	}
	slices.Sort(out.Hosts)
	out.Hosts = slices.Compact(out.Hosts)
	for _, r := range vs.Spec.Http {
		out.Leads = out.Leads || r.Delegate != nil || slices.ContainsFunc(r.Route, func(d *networking.HTTPRouteDestination) bool {
			return h.fullName(d.Destination.GetHost(), vs.Namespace) == to.Host
		})
		out.Routes = append(out.Routes, h.routesAt(httpRoute{HTTPRoute: r, ref: ref}, vs.Namespace, names, ports)...)
	}
	connects := func(route []*networking.RouteDestination) bool {
		return slices.ContainsFunc(route, func(d *networking.RouteDestination) bool {
			return h.fullName(d.Destination.GetHost(), vs.Namespace) == to.Host
		})
	}
	if slices.ContainsFunc(vs.Spec.Tcp, func(r *networking.TCPRoute) bool { return connects(r.Route) }) ||
		slices.ContainsFunc(vs.Spec.Tls, func(r *networking.TLSRoute) bool { return connects(r.Route) }) {
		out.Leads, out.Unknown = true, "routes connections by their port or the name that they ask for (SNI), which is not followed there"
	}
	if redirects && out.Unknown == "" {
		out.Unknown = "has only servers that redirect requests to HTTPS"
	}
	return out, takes
}

// sharedHosts are the hosts that both a VirtualService and a server of a Gateway have: of two of which one includes the other, the
// narrower one (Istio, host.Names.Intersection). Those of a server may be for VirtualServices of one namespace: a dot is that of the
// Gateway.
func (h *handWritten) sharedHosts(vs *istionetworkingv1.VirtualService, gateway string, s *networking.Server) (out []string) {
	for _, text := range s.Hosts {
		namespace, host, isQualified := strings.Cut(strings.ToLower(text), "/")
		switch {
		case !isQualified:
			host = namespace
		case namespace == ownNamespace:
			namespace, _, _ = strings.Cut(gateway, "/")
		}
		if isQualified && namespace != allNamespaces && namespace != vs.Namespace {
			continue
		}
		for _, own := range vs.Spec.Hosts {
			own = strings.ToLower(own)
			if !strings.HasPrefix(own, "*") {
				own = h.fullName(own, vs.Namespace)
			}
			switch {
			case covers(host, own):
				out = append(out, own)
			case covers(own, host):
				out = append(out, host)
			}
		}
	}
	return out
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

// routesAt are those of a route at gateways with some ports, one for each of its matches.
func (h *handWritten) routesAt(r httpRoute, namespace string, gateways []string, ports []uint32) (out []snapshot.HandRoute) {
	one := snapshot.HandRoute{ActionUnknown: r.unknown}
	h.act(&one, r)
	matches := r.Match
	if len(matches) == 0 {
		matches = []*networking.HTTPMatchRequest{{}}
	}
	for _, m := range matches {
		if len(m.Gateways) > 0 && !slices.ContainsFunc(m.Gateways, func(name string) bool { return slices.Contains(gateways, boundName(name, namespace)) }) ||
			m.Port != 0 && !slices.Contains(ports, m.Port) {
			continue
		}
		one.Match, one.MatchUnknown = matchOf(m)
		if len(m.Gateways) > 0 {
			one.Match.SourceNamespace, one.Match.SourceLabels = "", nil
		}
		if m.Port != 0 && slices.ContainsFunc(ports, func(p uint32) bool { return p != m.Port }) {
			one.MatchUnknown = "the port at which they enter"
		}
		out = append(out, one)
	}
	return out
}
