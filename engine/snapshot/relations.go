package snapshot

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnetworking "istio.io/client-go/pkg/apis/networking/v1"
)

// This file says what must be known to proxies before something else uses it. A route
// needs hosts, subsets and gateways. A host whose connections are passed on under
// another name needs that its DestinationRule asks gateways for it, and that
// DestinationRule needs the gateways that pass it on. A name is a host, a host and a
// subset joined by a slash, the passage to a host or the SNI that a gateway passes on, or
// the connections to a host.

// Relates reports whether objects of a kind may need or provide names.
func Relates(kind Kind) bool {
	switch kind {
	case VirtualService, DestinationRule, ServiceEntry, Gateway:
		return true
	}
	return false
}

// RoutingSpec returns the spec of an object of a kind that Provides and Needs know; it
// is nil for other kinds.
func RoutingSpec(object APIObject) any {
	switch o := object.(type) {
	case *clientnetworking.VirtualService:
		return &o.Spec
	case *clientnetworking.DestinationRule:
		return &o.Spec
	case *clientnetworking.ServiceEntry:
		return &o.Spec
	case *clientnetworking.Gateway:
		return &o.Spec
	}
	return nil
}

// IsLocal reports whether a name is one by which each cluster calls services of its own.
func IsLocal(name string) bool { return strings.Contains(name, ".svc."+localDomain) }

const localDomain = "cluster.local"

// IsIn reports whether a name is that of a service in a cluster as others call it, or of the
// passage to it: the gateways of that cluster have to know it before routes of other clusters
// use it.
func IsIn(name, cluster string) bool {
	_, domain, found := strings.Cut(name, ".svc.")
	return found && strings.HasPrefix(domain, cluster+".") && !IsLocal(name)
}

// Provides lists what other objects may need of an object with this spec.
func Provides(spec any) []string {
	var names []string
	switch spec := spec.(type) {
	case *networking.ServiceEntry:
		names = spec.Hosts
	case *networking.DestinationRule:
		for _, s := range spec.Subsets {
			names = append(names, subsetName(spec.Host, s.Name))
		}
		if len(askedFor(spec)) > 0 {
			names = append(names, connectionsTo(spec.Host))
		}
	case *networking.Gateway:
		for _, server := range spec.Servers {
			for _, host := range server.Hosts {
				if passesOn(server) {
					host = passageTo(host)
				}
				names = append(names, strings.TrimPrefix(host, sameNamespace))
			}
		}
	case *networking.VirtualService:
		if ofGateways(spec) {
			names = spec.Hosts
		}
	}
	return names
}

// sameNamespace begins the hosts of a Gateway that take VirtualServices of its own namespace
// only (istio.io: Server.hosts).
const sameNamespace = "./"

// ofGateways reports whether a VirtualService says what gateways do with connections that they
// do not read.
func ofGateways(service *networking.VirtualService) bool {
	return len(service.Gateways) > 0 && len(service.Http) == 0
}

// Needs lists what an object with this spec needs of others, ascending.
func Needs(spec any) []string {
	var names []string
	switch spec := spec.(type) {
	case *networking.VirtualService:
		for _, d := range destinations(spec) {
			names = append(names, reach(d.GetHost(), d.GetSubset())...)
			if _, federated, _ := strings.Cut(d.GetHost(), ".svc."); federated != "" && federated != localDomain && d.GetPort() != nil && !ofGateways(spec) {
				names = append(names, RelayedSNI(d.GetHost(), d.GetPort().GetNumber(), d.GetSubset()))
			}
		}
	case *networking.DestinationRule:
		for _, sni := range askedFor(spec) {
			// outbound_.<port>_.<subset>_.<host>
			if parts := strings.SplitN(sni, "_.", 4); len(parts) == 4 {
				names = append(names, reach(parts[3], parts[2])...)
			}
		}
	case *networking.ServiceEntry:
		for _, host := range spec.Hosts {
			if !strings.Contains(host, ".svc.") { // services are passed on under their own names
				names = append(names, connectionsTo(host))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// destinations are those to which routes lead and requests are mirrored.
func destinations(service *networking.VirtualService) []*networking.Destination {
	var out []*networking.Destination
	for _, route := range service.Http {
		for _, to := range route.Route {
			out = append(out, to.Destination)
		}
		for _, to := range route.Mirrors {
			out = append(out, to.Destination)
		}
		if route.Mirror != nil {
			out = append(out, route.Mirror)
		}
	}
	for _, route := range service.Tcp {
		for _, to := range route.Route {
			out = append(out, to.Destination)
		}
	}
	for _, route := range service.Tls {
		for _, to := range route.Route {
			out = append(out, to.Destination)
		}
	}
	return out
}

// reach lists what is needed to reach a host, or a subset of it.
func reach(host, subset string) []string {
	names := []string{host}
	if subset != "" {
		names = append(names, subsetName(host, subset))
	}
	// A gateway passes on what arrives for services of its own cluster, and for names that
	// stand for VirtualDestinations.
	if strings.Contains(host, ".svc.") && !IsLocal(host) || strings.Contains(host, "."+PassedAsMark+".") {
		names = append(names, passageTo(host))
	}
	return names
}

// passage begins the names of hosts to which a gateway passes connections on.
const passage = "passage to "

func passageTo(host string) string { return passage + host }

// passesOn reports whether a server of a gateway passes connections on that it does not read.
func passesOn(server *networking.Server) bool {
	return server.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH
}

// askedFor are the names of gateways' clusters for which a DestinationRule asks.
func askedFor(rule *networking.DestinationRule) []string {
	var out []string
	if sni := rule.GetTrafficPolicy().GetTls().GetSni(); sni != "" {
		out = append(out, sni)
	}
	for _, s := range rule.Subsets {
		if sni := s.GetTrafficPolicy().GetTls().GetSni(); sni != "" {
			out = append(out, sni)
		}
	}
	return out
}

// connections begins the names of connections to hosts.
const connections = "connections to "

func connectionsTo(host string) string { return connections + host }

// Together reports whether it is enough that what provides a name is written before
// what needs it: proxies use neither of the two without the other.
func Together(name string) bool { return strings.HasPrefix(name, connections) }

func subsetName(host, subset string) string { return host + "/" + subset }

// Widen returns the spec after with all that only before provides, or nil if no spec
// of this kind can have both.
func Widen(before, after any) any {
	switch to := after.(type) {
	case *networking.DestinationRule:
		if from, ok := before.(*networking.DestinationRule); ok && from.Host == to.Host {
			wide := to.DeepCopy()
			wide.Subsets = union(wide.Subsets, from.Subsets, (*networking.Subset).GetName)
			return wide
		}
	case *networking.Gateway:
		if from, ok := before.(*networking.Gateway); ok {
			wide := to.DeepCopy()
			// The names of a Gateway's ports are unique.
			portOf := func(s *networking.Server) string { return s.GetPort().GetName() }
			for _, server := range wide.Servers {
				for _, was := range from.Servers {
					if portOf(was) == portOf(server) && passesOn(server) && passesOn(was) {
						server.Hosts = union(server.Hosts, was.Hosts, func(host string) string { return host })
						slices.Sort(server.Hosts)
					}
				}
			}
			wide.Servers = union(wide.Servers, from.Servers, portOf)
			return wide
		}
	}
	return nil
}

// union appends the values of more with names that values has not.
func union[T any](values, more []T, name func(T) string) []T {
	for _, m := range more {
		if !slices.ContainsFunc(values, func(v T) bool { return name(v) == name(m) }) {
			values = append(values, m)
		}
	}
	return values
}
