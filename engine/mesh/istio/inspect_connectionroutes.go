package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// connectionRoutes are the routes for connections: those for TLS where callers speak it, and else the others (Istio,
// buildSidecarOutboundTLSFilterChainOpts and buildSidecarOutboundTCPFilterChainOpts).
func (h *handWritten) connectionRoutes(tcp []*networking.TCPRoute, tls []*networking.TLSRoute, ref snapshot.Ref, of *snapshot.HostQuery) (out []snapshot.HandRoute) {
	add := func(field string, route []*networking.RouteDestination, m snapshot.Match, port uint32, gateways []string, unknown string) {
		if len(route) == 0 || port != 0 && of.Port != 0 && port != of.Port || len(gateways) > 0 && !slices.Contains(gateways, meshGateway) {
			return
		}
		one := snapshot.HandRoute{Match: m, MatchUnknown: unknown, Action: &snapshot.Action{Policies: []snapshot.Ref{ref}}}
		one.Action.Targets = &snapshot.WithOrigin[[]snapshot.Target]{Origin: snapshot.Origin{Ref: ref, Field: field}}
		for _, d := range route {
			if d.Destination.GetHost() == "" {
				one.Ends = "has no backend for them"
			}
			one.Action.Targets.Value = append(one.Action.Targets.Value, h.target(d.Destination, d.Weight, ref.Namespace, nil))
		}
		out = append(out, one)
	}
	if of.Traffic == snapshot.TLSConnections {
		for _, r := range tls {
			for _, m := range r.Match {
				unknown := ""
				switch {
				case len(m.DestinationSubnets) > 0:
					unknown = "the address that they are for"
				case !slices.ContainsFunc(m.SniHosts, func(pattern string) bool { return coversHost(pattern, of.Host) }):
					unknown = "the name that they ask for (SNI)"
				}
				add("tls", r.Route, snapshot.Match{SourceNamespace: m.SourceNamespace, SourceLabels: m.SourceLabels}, m.Port, m.Gateways, unknown)
			}
		}
		return out
	}
	for _, r := range tcp {
		if len(r.Match) == 0 {
			add("tcp", r.Route, snapshot.Match{}, 0, nil, "")
		}
		for _, m := range r.Match {
			unknown := ""
			if len(m.DestinationSubnets) > 0 {
				unknown = "the address that they are for"
			}
			add("tcp", r.Route, snapshot.Match{SourceNamespace: m.SourceNamespace, SourceLabels: m.SourceLabels}, m.Port, m.Gateways, unknown)
		}
	}
	return out
}

// coversHost reports whether a host, or a pattern of them, is or includes a host.
func coversHost(pattern, host string) bool {
	pattern = strings.ToLower(pattern)
	if rest, isPattern := strings.CutPrefix(pattern, "*"); isPattern {
		return strings.HasSuffix(host, rest)
	}
	return pattern == host
}
