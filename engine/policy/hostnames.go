package policy

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// hostnames assigns host names to VirtualDestinations, in the order of byAge. A service always
// keeps its own name.
type hostnames struct {
	env *environment
	// owners are the VirtualDestinations by where they have which host name.
	owners map[hostKey]*virtualDestination
}

// hostKey is a host name for callers in a namespace of a cluster, or in all of them if that is empty.
type hostKey struct{ cluster, namespace, hostname string }

// assign returns for each mesh an issue if something else has the host name there.
func (h *hostnames) assign(v *virtualDestination) []*snapshot.Issue {
	taken := make([]*snapshot.Issue, len(v.meshes))
	for i, mesh := range v.meshes {
		taken[i] = h.claim(v, mesh)
	}
	return taken
}

// virtualAddresses assigns addresses to VirtualDestinations, in the order of byAge, but for those
// that no mesh sees. One that is stored with an address keeps it: a new one moves no
// other. Those of one namespace of a registered cluster have addresses that are theirs among all that callers there know: nobody else
// can take one from them.
func (env *environment) virtualAddresses(byAge []*virtualDestinationState, stored virtualmesh.Addresses) map[snapshot.Ref]string {
	out := make(map[snapshot.Ref]string, len(byAge))
	taken := map[netip.Addr]bool{}
	for len(byAge) > 0 {
		n := 1
		for first := byAge[0].virtualDestination.ref; n < len(byAge) && sameCallers(first, byAge[n].virtualDestination.ref); n++ {
		}
		addVirtualAddresses(env, out, byAge[:n], stored, taken)
		byAge = byAge[n:]
	}
	return out
}

// sameCallers reports whether two VirtualDestinations are both of the management cluster, or of one namespace of a registered one.
func sameCallers(a, b snapshot.Ref) bool {
	return a.Cluster == b.Cluster && (a.Cluster == "" || a.Namespace == b.Namespace)
}

// addVirtualAddresses adds those of VirtualDestinations of the management cluster, which are taken for all, or of one namespace of a
// registered one.
func addVirtualAddresses(env *environment, out map[snapshot.Ref]string, states []*virtualDestinationState, stored virtualmesh.Addresses, taken map[netip.Addr]bool) {
	own := taken
	if states[0].virtualDestination.ref.Cluster != "" {
		own = map[netip.Addr]bool{}
	}
	inUse := func(addr netip.Addr) bool { return taken[addr] || own[addr] }
	var added []*virtualDestination
	for _, s := range states {
		v := s.virtualDestination
		switch addr := stored.OfVirtualDestination(v.source); {
		case len(v.meshes) == 0:
		case addr.IsValid() && !inUse(addr) && !env.topology.AddressTaken(addr):
			own[addr], out[v.ref] = true, addr.String()
		default:
			added = append(added, v)
		}
	}
	for _, v := range added {
		addr := env.topology.FreeAddress(inUse, v.ref.Name, v.ref.Namespace, v.ref.Cluster, "virtual-destination")
		own[addr], out[v.ref] = true, addr.String()
	}
}

// claim assigns the host name in one mesh, or returns an issue.
func (h *hostnames) claim(v *virtualDestination, mesh *snapshot.MeshPlan) *snapshot.Issue {
	hostname := v.source.Spec.Hostname
	if service, ref := h.env.nameInUse(hostname, mesh); service != "" {
		issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname", "%s is the name of %s in mesh %s", hostname, service, mesh.Ref.Name).At("hostname").CausedBy(ref)
		return &issue
	}
	if other := h.env.meshWithName(hostname, v.meshes); other != nil {
		issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname, such as reviews.global",
			"%s is a name for Services of cluster %s, whether they are in a mesh or not", hostname, other.Cluster).At("hostname").CausedBy(other.Ref)
		return &issue
	}
	at, hint := hostKey{cluster: mesh.Cluster, hostname: hostname}, "choose another hostname, or export only one of them to the mesh"
	if v.ref.Cluster != "" {
		if other := h.owners[at]; other != nil {
			issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname, or call that one",
				"hostname %s is that of VirtualDestination %s of the management cluster in mesh %s", hostname, other.ref.Identity(), mesh.Ref.Name).At("hostname").CausedBy(other.ref)
			return &issue
		}
		at.namespace, hint = v.ref.Namespace, "choose another hostname, or delete one of them" // others do not see it
	}
	if other := h.owners[at]; other != nil && other != v {
		issue := snapshot.Errorf(snapshot.HostnameTaken, hint,
			"hostname %s is in use by the older VirtualDestination %s in mesh %s", hostname, other.ref.Identity(), mesh.Ref.Name).At("hostname").CausedBy(other.ref)
		return &issue
	}
	h.owners[at] = v
	return nil
}

// nameInUse describes the service that has a host name in a mesh; empty if there is
// none. External services count in every mesh: any mesh may get a route to them.
func (env *environment) nameInUse(hostname string, mesh *snapshot.MeshPlan) (string, snapshot.Ref) {
	for _, d := range env.externals {
		if slices.Contains(d.Spec.ExternalService.Hosts, hostname) {
			return "external service " + d.Name + "." + d.Namespace, inventory.DestinationRef(d)
		}
	}
	if at, ok := env.topology.ServiceNamed(hostname, mesh); ok {
		d := env.inv.Destinations[at]
		return "service " + inventory.ServiceName(d.Spec.KubeService.Ref), inventory.DestinationRef(d)
	}
	if service, ok := env.services[mesh.Cluster].named(hostname); ok {
		what := "service "
		if plainName(hostname) != service.name+"."+service.namespace {
			what = "a pod of service "
		}
		return what + inventory.ServiceName(commonv1.ClusterObjectRef{Name: service.name, Namespace: service.namespace, ClusterName: mesh.Cluster}), snapshot.Ref{Kind: snapshot.Service, Cluster: mesh.Cluster, Namespace: service.namespace, Name: service.name}
	}
	return "", snapshot.Ref{}
}

// meshWithName finds the first mesh in the domain of whose cluster a host name is that of
// a Service, or of a pod of one, whether there is such a Service or not; nil if there is
// none. Names that pods complete with the domain are in it
// (https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/).
func (env *environment) meshWithName(hostname string, meshes []*snapshot.MeshPlan) *snapshot.MeshPlan {
	for _, mesh := range meshes {
		for suffix := "svc." + env.inv.Domain(mesh.Cluster); ; {
			if name := plainName(hostname); name == suffix || strings.HasSuffix(name, "."+suffix) {
				return mesh
			}
			end := strings.LastIndexByte(suffix, '.')
			if end < 0 {
				break
			}
			suffix = suffix[:end]
		}
	}
	return nil
}

// plainName is a host name as DNS compares it.
func plainName(hostname string) string { return strings.ToLower(strings.TrimSuffix(hostname, ".")) }

// clusterServices are all Services of a cluster, also those in no mesh.
type clusterServices struct {
	from []*corev1.Service
	// names is nil until it is needed.
	names map[serviceName]bool
}

type serviceName struct{ namespace, name string }

// named finds the Service of which a host name is the short one, NAME.NAMESPACE, or that
// of a pod of it.
func (s *clusterServices) named(hostname string) (serviceName, bool) {
	rest, namespace, ok := cutLast(plainName(hostname))
	if s == nil || !ok {
		return serviceName{}, false
	}
	if s.names == nil {
		s.names = make(map[serviceName]bool, len(s.from))
		for _, o := range s.from {
			s.names[serviceName{o.Namespace, o.Name}] = true
		}
	}
	_, name, _ := cutLast(rest)
	at := serviceName{namespace, name}
	return at, s.names[at]
}

// cutLast cuts the last label off a name; false if it has no other.
func cutLast(name string) (rest, last string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// updateServices reads the Services of clusters again whose Services changed. It reports
// whether the host name of a VirtualDestination became that of a Service, or no longer is.
func (r *reconciler) updateServices(in *snapshot.Input) bool {
	if r.last.sameClusters(&r.next) {
		return false
	}
	before := r.services
	r.services = make(map[string]*clusterServices, len(in.Clusters))
	changed := false
	for _, c := range in.Clusters {
		now := &clusterServices{from: c.Services}
		if was := before[c.Name]; was != nil {
			if snapshot.SameSlice(was.from, c.Services) {
				now = was
			} else {
				changed = changed || slices.ContainsFunc(r.next.virtualDestinations, func(v *enterprisev1beta1.VirtualDestination) bool {
					_, had := was.named(v.Spec.Hostname)
					_, has := now.named(v.Spec.Hostname)
					return had != has
				})
			}
		}
		r.services[c.Name] = now
	}
	return changed
}

// isName reports whether an address is a host name.
func isName(address string) bool {
	_, err := netip.ParseAddr(address)
	return err != nil
}
