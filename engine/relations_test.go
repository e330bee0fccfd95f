package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRelationsAreWhatSpecsSay: a renderer states what its objects need and provide from the Plan. Who reads their specs
// finds the same: in each golden case, and in random worlds.
func TestRelationsAreWhatSpecsSay(t *testing.T) {
	t.Parallel()
	inEachCase(t, func(t *testing.T, _ int, in *snapshot.Input) {
		t.Helper()
		compareRelations(t, in)
	})
	for seed := range seeds(t, rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRandomWorld(seed)
			for range 8 {
				w.change()
				compareRelations(t, w.input())
			}
		})
	}
}

func compareRelations(t *testing.T, in *snapshot.Input) {
	t.Helper()
	var s specs
	for _, c := range in.Clusters {
		s.domains = append(s.domains, cmp.Or(c.Domain, "cluster.local"))
	}
	for o := range engine.Translate(in).Output.Objects {
		if slices.ContainsFunc(o.Content.Parents, func(ref snapshot.Ref) bool { return ref.Kind == snapshot.VirtualDestination && ref.Cluster != "" }) {
			require.Zero(t, o.Content.Relations, "%s: routes for others wait for hosts of the same name that they know", o.Ref)
			continue
		}
		var needs, provides []snapshot.Name
		for _, name := range s.needs(o.Content) {
			needs = append(needs, snapshot.Name{Name: name, Local: s.isLocal(name)})
		}
		for _, name := range s.provides(o.Content.Spec) {
			provides = append(provides, snapshot.Name{
				Name: name, Local: s.isLocal(name), Home: s.isIn(name, o.Ref.Cluster), Together: strings.HasPrefix(name, connections),
			})
		}
		said := o.Content.Relations
		slices.SortFunc(provides, func(a, b snapshot.Name) int { return strings.Compare(a.Name, b.Name) })
		require.Equal(t, needs, withoutTogether(said.Needs), "%s needs", o.Ref)
		require.Equal(t, provides, said.Provides, "%s provides", o.Ref)
	}
}

// withoutTogether is what needs say: whether names are written together is for those who provide them to say.
func withoutTogether(names []snapshot.Name) []snapshot.Name {
	names = slices.Clone(names)
	for i := range names {
		names[i].Together = false
	}
	return names
}

// specs reads relations back from specs. Domains are those of the clusters.
type specs struct{ domains []string }

// isLocal reports whether a name is one by which each cluster calls services of its own.
func (s *specs) isLocal(name string) bool {
	return slices.ContainsFunc(s.domains, func(domain string) bool { return strings.Contains(name, ".svc."+domain) })
}

// isIn reports whether a name is that of a service in a cluster as others call it, or of the
// passage to it: the gateways of that cluster have to know it before routes of other clusters
// use it.
func (s *specs) isIn(name, cluster string) bool {
	_, domain, found := strings.Cut(name, ".svc.")
	return found && strings.HasPrefix(domain, cluster+".") && !s.isLocal(name)
}

// provides lists what other objects may need of an object with this spec.
func (s *specs) provides(spec any) []string {
	var names []string
	switch spec := spec.(type) {
	case *networking.ServiceEntry:
		names = spec.Hosts
	case *networking.DestinationRule:
		for _, subset := range spec.Subsets {
			names = append(names, subsetName(spec.Host, subset.Name))
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

// needs lists what an object with this spec needs of others, ascending.
func (s *specs) needs(content *snapshot.Content) []string {
	var names []string
	switch spec := content.Spec.(type) {
	case *networking.VirtualService:
		for _, d := range destinations(spec) {
			names = append(names, s.reach(d.GetHost(), d.GetSubset())...)
			if strings.Contains(d.GetHost(), ".svc.") && !s.isLocal(d.GetHost()) && d.GetPort() != nil && !ofGateways(spec) {
				names = append(names, snapshot.RelayedSNI(d.GetHost(), d.GetPort().GetNumber(), d.GetSubset()))
			}
		}
	case *networking.DestinationRule:
		for _, sni := range askedFor(spec) {
			// outbound_.<port>_.<subset>_.<host>
			if parts := strings.SplitN(sni, "_.", 4); len(parts) == 4 {
				names = append(names, s.reach(parts[3], parts[2])...)
			}
		}
	case *networking.ServiceEntry:
		for _, host := range spec.Hosts {
			if content.Annotations[snapshot.FederationAnnotation] == "" { // services are passed on under their own names
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
func (s *specs) reach(host, subset string) []string {
	names := []string{host}
	if subset != "" {
		names = append(names, subsetName(host, subset))
	}
	// A gateway passes on what arrives for services of its own cluster, and for names that
	// stand for VirtualDestinations.
	if strings.Contains(host, ".svc.") && !s.isLocal(host) || strings.Contains(host, "."+snapshot.PassedAsMark+".") {
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

func subsetName(host, subset string) string { return host + "/" + subset }
