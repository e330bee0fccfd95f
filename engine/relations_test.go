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
	state := engine.Translate(in)
	s := specsOf(in, state)
	for o := range state.Output.Objects {
		var needs, provides []snapshot.Name
		for _, name := range s.needs(o) {
			needs = append(needs, snapshot.Name{Name: name, Local: isLocal(name)})
		}
		for _, name := range s.provides(o) {
			provides = append(provides, snapshot.Name{
				Name: name, Local: isLocal(name), Home: !isLocal(name) && !isVirtual(name), Together: strings.HasPrefix(name, connections),
			})
		}
		said := o.Content.Relations
		slices.SortFunc(provides, func(a, b snapshot.Name) int { return strings.Compare(a.Name, b.Name) })
		require.Equal(t, needs, onlyNames(said.Needs), "%s needs", o.Ref)
		require.Equal(t, provides, said.Provides, "%s provides", o.Ref)
	}
}

// onlyNames is what needs say: how long names are waited for is for those who provide them to say.
func onlyNames(names []snapshot.Name) []snapshot.Name {
	names = slices.Clone(names)
	for i := range names {
		names[i].Together, names[i].Home = false, false
	}
	return names
}

// TestNothingStaysForOthers over random edits: no object needs a name that another one gives up though it stays. What provides such a
// name would wait for what needs it, for good.
func TestNothingStaysForOthers(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRandomWorld(seed)
			before := engine.Translate(w.input()).Output
			for range 12 {
				w.change()
				after := engine.Translate(w.input()).Output
				given, needs := givenUp(before, after), map[string]snapshot.Ref{}
				for o := range after.Objects {
					for _, name := range o.Content.Relations.Needs {
						needs[keyOf(name, o.Ref)] = o.Ref
					}
				}
				for key, by := range given {
					require.NotContains(t, needs, key, "%s gives it up", by)
				}
				before = after
			}
		})
	}
}

// TestClustersWaitForNoOthers over random worlds: of what an object needs, other clusters provide only what their gateways have to know
// to pass its requests on. Where one refuses objects, edits of the others go on.
func TestClustersWaitForNoOthers(t *testing.T) {
	t.Parallel()
	type provider struct {
		of   snapshot.Ref
		name snapshot.Name
	}
	waits := 0
	for seed := range seeds(t, rounds, func() bool { return waits > 100 }) {
		w := newRandomWorld(seed)
		for range 8 {
			w.change()
		}
		state := engine.Translate(w.input())
		providers := map[string][]provider{}
		for o := range state.Output.Objects {
			for _, name := range o.Content.Relations.Provides {
				providers[keyOf(name, o.Ref)] = append(providers[keyOf(name, o.Ref)], provider{o.Ref, name})
			}
		}
		for o := range state.Output.Objects {
			for _, name := range o.Content.Relations.Needs {
				for _, p := range providers[keyOf(name, o.Ref)] {
					if p.of.Cluster != o.Ref.Cluster {
						waits++
						require.True(t, p.name.Home || strings.HasSuffix(p.name.Name, inCluster(p.of.Cluster, "")), "seed %d: %s waits for %q of %s", seed, o.Ref, name.Name, p.of)
					}
				}
			}
		}
	}
	require.Positive(t, waits)
}

// givenUp are the names that objects provided and no longer do, though they stay.
func givenUp(before, after *snapshot.Output) map[string]snapshot.Ref {
	now, out := map[snapshot.Ref]*snapshot.Object{}, map[string]snapshot.Ref{}
	for o := range after.Objects {
		now[o.Ref] = o
	}
	for was := range before.Objects {
		is := now[was.Ref]
		if is == nil {
			continue
		}
		for _, name := range was.Content.Relations.Provides {
			if !slices.ContainsFunc(is.Content.Relations.Provides, func(n snapshot.Name) bool { return n.Name == name.Name }) {
				out[keyOf(name, was.Ref)] = was.Ref
			}
		}
	}
	return out
}

// keyOf is a name and, if it is local, its cluster.
func keyOf(name snapshot.Name, of snapshot.Ref) string {
	if name.Local {
		return of.Cluster + ": " + name.Name
	}
	return name.Name
}

// specs reads relations back from specs.
type specs struct {
	// domains are those of the clusters, and gateways has the clusters of the addresses of gateways.
	domains  []string
	gateways map[string]string
	// entries and rules are the ServiceEntries and DestinationRules, by cluster, namespace and host.
	entries map[hostAt]*networking.ServiceEntry
	rules   map[hostAt]*networking.DestinationRule
}

type hostAt struct{ cluster, namespace, host string }

func specsOf(in *snapshot.Input, state *snapshot.State) *specs {
	s := &specs{gateways: map[string]string{}, entries: map[hostAt]*networking.ServiceEntry{}, rules: map[hostAt]*networking.DestinationRule{}}
	for _, c := range in.Clusters {
		s.domains = append(s.domains, cmp.Or(c.Domain, "cluster.local"))
	}
	for _, mesh := range state.Plan.Meshes {
		for _, gw := range mesh.Gateways {
			for _, address := range gw.Addresses {
				s.gateways[address] = mesh.Cluster
			}
		}
	}
	for o := range state.Output.Objects {
		switch spec := o.Content.Spec.(type) {
		case *networking.ServiceEntry:
			s.entries[hostOf(o, spec.Hosts[0])] = spec
		case *networking.DestinationRule:
			s.rules[hostOf(o, spec.Host)] = spec
		}
	}
	return s
}

func hostOf(o *snapshot.Object, host string) hostAt {
	return hostAt{o.Ref.Cluster, o.Ref.Namespace, host}
}

// through are the clusters whose gateways have endpoints of a host.
func (s *specs) through(at hostAt) []string {
	var out []string
	for _, e := range s.entries[at].GetEndpoints() {
		if cluster := s.gateways[e.Address]; cluster != "" && !slices.Contains(out, cluster) {
			out = append(out, cluster)
		}
	}
	return out
}

// passages are what is needed where a DestinationRule asks gateways to pass connections on to a VirtualDestination.
func (s *specs) passages(at hostAt) []string {
	var names []string
	for _, sni := range askedFor(s.rules[at]) {
		// outbound_.<port>_.<subset>_.<host>
		parts := strings.SplitN(sni, "_.", 4)
		for _, cluster := range s.through(at) {
			for _, name := range append(reach(parts[3], parts[2]), passageTo(parts[3])) {
				names = append(names, inCluster(cluster, name))
			}
		}
	}
	return names
}

// isVirtual reports whether gateways know a VirtualDestination by a host.
func isVirtual(host string) bool { return strings.Contains(host, "."+snapshot.PassedAsMark+".") }

// inCluster is a name of what gateways of a cluster know.
func inCluster(cluster, name string) string { return name + " in " + cluster }

// ofNamespace is the namespace of the VirtualDestination of which an object is, if callers in one alone see it.
func ofNamespace(o *snapshot.Object) string {
	for _, ref := range o.Content.Parents {
		if ref.Kind == snapshot.VirtualDestination && ref.Cluster != "" {
			return ref.Namespace
		}
	}
	return ""
}

// isLocal reports whether a name is of what proxies of a cluster know from objects there.
func isLocal(name string) bool {
	return strings.HasPrefix(name, connections) || !strings.HasPrefix(name, passage) && !strings.HasPrefix(name, way) && !isVirtual(name)
}

// isRemote reports whether a host is a service of another cluster, or of its own as others call it.
func (s *specs) isRemote(host string) bool {
	return strings.Contains(host, ".svc.") && !slices.ContainsFunc(s.domains, func(domain string) bool { return strings.Contains(host, ".svc."+domain) })
}

// isIn reports whether a name is that of a service in a cluster as others call it: its gateways have to know it before routes of other
// clusters use it.
func (s *specs) isIn(name, cluster string) bool {
	_, domain, _ := strings.Cut(name, ".svc.")
	return s.isRemote(name) && strings.HasPrefix(domain, cluster+".")
}

// way begins the names of what the gateways of a cluster know of its services.
const way = "the way to "

// provides lists what other objects may need of an object.
func (s *specs) provides(o *snapshot.Object) []string {
	var names []string
	switch spec := o.Content.Spec.(type) {
	case *networking.ServiceEntry:
		names = s.known(o, spec.Hosts...)
	case *networking.DestinationRule:
		for _, subset := range spec.Subsets {
			names = append(names, s.known(o, subsetName(spec.Host, subset.Name))...)
		}
		if len(askedFor(spec)) > 0 {
			names = append(names, connectionsTo(o, spec.Host))
		}
	case *networking.Gateway:
		for _, server := range spec.Servers {
			for _, host := range server.Hosts {
				switch {
				case isVirtual(host):
					names = append(names, inCluster(o.Ref.Cluster, passageTo(host)))
				case passesOn(server):
					names = append(names, passageTo(host))
				default:
					names = append(names, s.known(o, strings.TrimPrefix(host, sameNamespace))...)
				}
			}
		}
	case *networking.VirtualService:
		if ofGateways(spec) {
			names = s.known(o, spec.Hosts...)
		}
	}
	return names
}

// known are those of the names of an object that routes and gateways may need.
func (s *specs) known(o *snapshot.Object, names ...string) []string {
	var out []string
	for _, name := range names {
		switch {
		case isVirtual(name):
			out = append(out, inCluster(o.Ref.Cluster, name))
		case s.isIn(name, o.Ref.Cluster):
			out = append(out, way+name)
		case ofNamespace(o) == "":
			out = append(out, name)
		}
	}
	return out
}

// sameNamespace begins the hosts of a Gateway that take VirtualServices of its own namespace
// only (istio.io: Server.hosts).
const sameNamespace = "./"

// ofGateways reports whether a VirtualService says what gateways do with connections that they
// do not read.
func ofGateways(service *networking.VirtualService) bool {
	return len(service.Gateways) > 0 && len(service.Http) == 0
}

// needs lists what an object needs of others, ascending.
func (s *specs) needs(o *snapshot.Object) []string {
	var names []string
	switch spec := o.Content.Spec.(type) {
	case *networking.VirtualService:
		for _, d := range destinations(spec) {
			names = append(names, reach(d.GetHost(), d.GetSubset())...)
			if !s.isRemote(d.GetHost()) {
				continue
			}
			for _, name := range reach(d.GetHost(), d.GetSubset()) {
				names = append(names, way+name)
			}
			names = append(names, passageTo(d.GetHost()))
			if d.GetPort() != nil && !ofGateways(spec) {
				sni := snapshot.RelayedSNI(d.GetHost(), d.GetPort().GetNumber(), d.GetSubset())
				names = append(names, sni, way+sni)
			}
		}
	case *networking.DestinationRule:
		names = s.passages(hostOf(o, spec.Host))
	case *networking.ServiceEntry:
		at := hostOf(o, spec.Hosts[0])
		names = s.passages(at)
		if len(askedFor(s.rules[at])) > 0 {
			names = append(names, connectionsTo(o, at.host))
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
	for _, s := range rule.GetSubsets() {
		if sni := s.GetTrafficPolicy().GetTls().GetSni(); sni != "" {
			out = append(out, sni)
		}
	}
	return out
}

// connections begins the names of connections to hosts.
const connections = "connections to "

// connectionsTo names how proxies connect to a host of an object.
func connectionsTo(o *snapshot.Object, host string) string {
	if namespace := ofNamespace(o); namespace != "" {
		host += " from " + namespace
	}
	return connections + host
}

func subsetName(host, subset string) string { return host + "/" + subset }
