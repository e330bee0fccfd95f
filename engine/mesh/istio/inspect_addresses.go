package istio

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about ServiceEntries that take connections by their address. Where proxies see connections, or detect what they are, they
// listen at the address of each service, and else at all addresses: what is for one address comes first (Istio,
// ListenerBuilder.buildSidecarOutboundListener).

// addressed is a ServiceEntry with addresses.
type addressed struct {
	handWrittenObject
	hosts []string
	// addresses have a length of their own; a port is listened on there.
	addresses []netip.Prefix
	ports     map[uint32]bool
}

// listensAt reports whether proxies listen at the addresses of a ServiceEntry for a protocol: those of requests are told by their host.
func listensAt(protocol string) bool {
	switch strings.ToUpper(protocol) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY", udp:
		return false
	}
	return true
}

// addressedOf is what a ServiceEntry takes by its addresses; false if that is nothing.
func addressedOf(o *istionetworkingv1.ServiceEntry, object handWrittenObject) (addressed, bool) {
	out := addressed{handWrittenObject: object, hosts: o.Spec.Hosts, addresses: rangesIn(o.Spec.Addresses), ports: map[uint32]bool{}}
	for _, p := range o.Spec.Ports {
		if listensAt(p.GetProtocol()) {
			out.ports[p.GetNumber()] = true
		}
	}
	return out, len(out.addresses) > 0 && len(out.ports) > 0
}

// rangesIn are those of some texts that are addresses, or ranges of them.
func rangesIn(texts []string) (out []netip.Prefix) {
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		} else if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}

// Takers implements snapshot.ByHand. A range is listened for at all addresses, so that a listener for one address comes first.
func (h *handWritten) Takers(of *snapshot.HostQuery, callers *snapshot.PodQuery) (out []snapshot.Intersection) {
	for _, entry := range h.addressed {
		to := entry.seenBy(of.Mesh).among(of.Sources)
		if !entry.ports[of.Port] || to.none() || slices.Equal(entry.hosts, []string{of.Host}) || callers != nil && !importsSome(h, &entry, of, callers) {
			continue
		}
		for _, r := range entry.addresses {
			if !r.IsSingleIP() && (of.Traffic != snapshot.Requests || of.Detects) {
				continue
			}
			if what := takes(r, of); what != "" {
				out = append(out, snapshot.Intersection{
					Ref: entry.ref, What: what + to.phrase() + ", and takes connections of callers to it",
					Hint: "remove the address from its spec.addresses, or the port from its spec.ports",
				})
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b snapshot.Intersection) int { return a.Ref.Compare(b.Ref) })
	return out
}

// takes says that a range has an address to which callers of a host connect, or may have it; empty if it has none.
func takes(r netip.Prefix, of *snapshot.HostQuery) string {
	if len(of.Addresses) == 0 {
		return fmt.Sprintf("may have the address of %s, which is not known, on port %d", of.Host, of.Port)
	}
	for _, a := range of.Addresses {
		switch {
		case !r.Overlaps(a):
		case r.Bits() <= a.Bits():
			return fmt.Sprintf("has address %s of %s on port %d", a.Addr(), of.Host, of.Port)
		default:
			return fmt.Sprintf("may have the address of %s, which is not known, on port %d", of.Host, of.Port)
		}
	}
	return ""
}

// importsSome reports whether the proxies of callers import one of the hosts of a ServiceEntry.
func importsSome(h *handWritten, entry *addressed, of *snapshot.HostQuery, callers *snapshot.PodQuery) bool {
	return slices.ContainsFunc(entry.hosts, func(host string) bool {
		_, hides := h.Hides(&snapshot.HostQuery{Host: host, Mesh: of.Mesh, Home: entry.ref.Namespace, Port: of.Port}, callers)
		return !hides
	})
}
