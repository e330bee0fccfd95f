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
// subset joined by a slash, the wildcard of the hosts that a gateway passes on, or the
// connections to a host.

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

// IsIn reports whether a name is that of a service in a cluster as others call it, or
// of all of them: the gateways of that cluster have to know it before routes of other
// clusters use it.
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
			names = append(names, server.Hosts...)
		}
	}
	return names
}

// Needs lists what an object with this spec needs of others, ascending.
func Needs(spec any) []string {
	var names []string
	switch spec := spec.(type) {
	case *networking.VirtualService:
		for _, d := range destinations(spec) {
			names = append(names, reach(d.GetHost(), d.GetSubset())...)
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
	// A gateway passes on what arrives for the hosts of its own cluster, and for those
	// that stand for VirtualDestinations.
	if _, domain, ok := strings.Cut(host, ".svc."); ok {
		names = append(names, "*.svc."+domain)
	} else if _, domain, ok := strings.Cut(host, "."+PassedAsMark+"."); ok {
		names = append(names, "*."+PassedAsMark+"."+domain)
	}
	return names
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
	from, ok := before.(*networking.DestinationRule)
	if !ok {
		return nil
	}
	to, ok := after.(*networking.DestinationRule)
	if !ok || from.Host != to.Host {
		return nil
	}
	wide := to.DeepCopy()
	for _, s := range from.Subsets {
		if !slices.ContainsFunc(to.Subsets, func(o *networking.Subset) bool { return o.Name == s.Name }) {
			wide.Subsets = append(wide.Subsets, s.DeepCopy())
		}
	}
	return wide
}
