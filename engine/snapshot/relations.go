package snapshot

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnetworking "istio.io/client-go/pkg/apis/networking/v1"
)

// This file says what routes need: the hosts, subsets and gateways that proxies must
// know before a route uses them. A name is a host, a host and a subset joined by a
// slash, or the wildcard of the hosts that a gateway passes on.

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

// Provides lists what routes of other objects may need of an object with this spec.
func Provides(spec any) []string {
	var names []string
	switch spec := spec.(type) {
	case *networking.ServiceEntry:
		names = spec.Hosts
	case *networking.DestinationRule:
		for _, s := range spec.Subsets {
			names = append(names, subsetName(spec.Host, s.Name))
		}
	case *networking.Gateway:
		for _, server := range spec.Servers {
			names = append(names, server.Hosts...)
		}
	}
	return names
}

// Needs lists what the routes of an object with this spec need.
func Needs(spec any) []string {
	service, ok := spec.(*networking.VirtualService)
	if !ok {
		return nil
	}
	var names []string
	need := func(d *networking.Destination) {
		if d == nil {
			return
		}
		names = append(names, d.Host)
		if d.Subset != "" {
			names = append(names, subsetName(d.Host, d.Subset))
		}
		// A gateway of the cluster of a federated host passes on what arrives for
		// the hosts of its cluster.
		if _, domain, ok := strings.Cut(d.Host, ".svc."); ok {
			names = append(names, "*.svc."+domain)
		}
	}
	for _, route := range service.Http {
		for _, to := range route.Route {
			need(to.Destination)
		}
		for _, to := range route.Mirrors {
			need(to.Destination)
		}
		need(route.Mirror)
	}
	for _, route := range service.Tcp {
		for _, to := range route.Route {
			need(to.Destination)
		}
	}
	for _, route := range service.Tls {
		for _, to := range route.Route {
			need(to.Destination)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

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
