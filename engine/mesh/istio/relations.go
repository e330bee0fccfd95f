package istio

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says what must be known to proxies before something else uses it. A route needs hosts, subsets and gateways. A host whose
// connections are passed on under another name needs that its DestinationRule asks gateways for it, and both need the gateways that
// pass it on. A name is a host, a host and a subset joined by a slash, the passage to a host or the SNI that a gateway passes on, or
// the connections to a host. Proxies of a cluster know it from objects there, so each cluster has names of its own. The others are of
// what the gateways know that pass connections on: of the one cluster that has a service or, ending in "in" and the cluster, of one
// that has a service behind a VirtualDestination.

// related adds relations to the content of an object.
func related(c *snapshot.Content, needs, provides []snapshot.Name) *snapshot.Content {
	c.Relations.Needs, c.Relations.Provides = sortedNames(needs), sortedNames(provides)
	return c
}

func sortedNames(names []snapshot.Name) []snapshot.Name {
	slices.SortFunc(names, func(a, b snapshot.Name) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(names, func(a, b snapshot.Name) bool { return a.Name == b.Name })
}

// reach lists what is needed to reach a host, or a subset of it if that is not empty.
func reach(host string, at snapshot.Place, subset string) []snapshot.Name {
	names := []snapshot.Name{{Name: host, Local: true}}
	if subset != "" {
		names = append(names, snapshot.Name{Name: subsetName(host, subset), Local: true})
	}
	if at == snapshot.PlaceElsewhere {
		names = append(append(names, wayTo(names)...), passageTo(host))
	}
	return names
}

// passageTo names what a gateway passes on without reading it.
func passageTo(host string) snapshot.Name {
	return snapshot.Name{Name: "passage to " + host, Home: true}
}

// inCluster says of names that they are about what the gateways of one cluster pass on. VirtualDestinations have one name in all
// clusters that have a service behind them, and each of these passes it on to its own: what has left one does not wait for others.
func inCluster(cluster string, names []snapshot.Name) []snapshot.Name {
	var out []snapshot.Name
	for _, n := range names {
		out = append(out, snapshot.Name{Name: n.Name + " in " + cluster})
	}
	return out
}

// wayTo says of names that they are about what the gateways know of a service of their own cluster.
func wayTo(names []snapshot.Name) []snapshot.Name {
	var out []snapshot.Name
	for _, n := range names {
		out = append(out, snapshot.Name{Name: "the way to " + n.Name, Home: true})
	}
	return out
}

// connectionsTo names how proxies of a cluster connect to a host.
func connectionsTo(host string) snapshot.Name {
	return snapshot.Name{Name: "connections to " + host, Local: true, Together: true}
}

func subsetName(host, subset string) string { return host + "/" + subset }

// subsetNames are what a DestinationRule provides.
func subsetNames(rule *networking.DestinationRule) []snapshot.Name {
	var out []snapshot.Name
	for _, s := range rule.Subsets {
		out = append(out, snapshot.Name{Name: subsetName(rule.Host, s.Name), Local: true})
	}
	return out
}

// hostNames are what a ServiceEntry provides.
func hostNames(entry *networking.ServiceEntry) []snapshot.Name {
	var out []snapshot.Name
	for _, host := range entry.Hosts {
		out = append(out, snapshot.Name{Name: host, Local: true})
	}
	return out
}

// Widen is part of render.Renderer: a DestinationRule keeps its subsets, and how it asks gateways to pass connections on; a Gateway
// keeps its servers and what they pass on.
func (Renderer) Widen(_ snapshot.Kind, before, after any) any {
	switch to := after.(type) {
	case *networking.DestinationRule:
		if from, ok := before.(*networking.DestinationRule); ok && from.Host == to.Host {
			wide := to.DeepCopy()
			if asksGateways(from) && !asksGateways(to) {
				// A gateway passes on nothing else, and pods do not look at the SNI.
				was := from.DeepCopy()
				wide.TrafficPolicy, wide.Subsets = was.TrafficPolicy, union(was.Subsets, wide.Subsets, (*networking.Subset).GetName)
				return wide
			}
			wide.Subsets = union(wide.Subsets, from.Subsets, (*networking.Subset).GetName)
			return wide
		}
	case *networking.Gateway:
		if from, ok := before.(*networking.Gateway); ok {
			return widenGateway(from, to.DeepCopy())
		}
	}
	return nil
}

func widenGateway(from, wide *networking.Gateway) *networking.Gateway {
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

// asksGateways reports whether connections name a VirtualDestination, for gateways to pass them on.
func asksGateways(rule *networking.DestinationRule) bool {
	return strings.Contains(rule.GetTrafficPolicy().GetTls().GetSni(), "."+snapshot.PassedAsMark+".")
}

// passesOn reports whether a server of a gateway passes connections on that it does not read.
func passesOn(server *networking.Server) bool {
	return server.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH
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

// routeNeeds is what the routes of a view need. Own is where the service of the view is.
func routeNeeds(view *snapshot.View, own snapshot.Place, ports []uint32) []snapshot.Name {
	var out []snapshot.Name
	add := func(host string, at snapshot.Place, subset string, port uint32) {
		out = append(out, reach(host, at, subset)...)
		if at == snapshot.PlaceElsewhere {
			sni := []snapshot.Name{{Name: snapshot.RelayedSNI(host, port, subset), Local: true}}
			out = append(append(out, sni...), wayTo(sni)...)
		}
	}
	for _, route := range view.Routes {
		a := route.Action
		switch {
		case a.Targets == nil || len(a.Targets.Value) == 0:
			for _, port := range ports {
				add(view.Host, own, "", port)
			}
		default:
			for _, t := range a.Targets.Value {
				add(t.Host, t.Place, t.Subset, t.Port)
			}
		}
		if a.Mirror != nil {
			add(a.Mirror.Value.Host, a.Mirror.Value.Place, "", a.Mirror.Value.Port)
		}
	}
	return out
}

// placeOf is where a service is, as seen from a mesh in its own cluster or in another one.
func placeOf(remote bool) snapshot.Place {
	if remote {
		return snapshot.PlaceElsewhere
	}
	return snapshot.PlaceHere
}
