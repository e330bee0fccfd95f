package policy

import (
	"net/netip"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// hostnames assigns host names to VirtualDestinations, oldest first. A service always
// keeps its own name.
type hostnames struct {
	env *environment
	// owners are the VirtualDestinations by cluster and host name.
	owners map[hostKey]*virtualDestination
}

type hostKey struct{ cluster, hostname string }

// assign returns for each mesh an issue if something else has the host name there.
func (h *hostnames) assign(v *virtualDestination) []*snapshot.Issue {
	taken := make([]*snapshot.Issue, len(v.meshes))
	for i, mesh := range v.meshes {
		taken[i] = h.claim(v, mesh)
	}
	return taken
}

// virtualAddresses assigns addresses to VirtualDestinations, oldest first, but for those
// that no mesh sees. One that is stored with an address keeps it: a new one moves no
// other.
func (env *environment) virtualAddresses(byAge []*virtualDestinationState, stored virtualmesh.Addresses) map[snapshot.Ref]string {
	out := make(map[snapshot.Ref]string, len(byAge))
	taken := map[netip.Addr]bool{}
	var added []*virtualDestination
	for _, s := range byAge {
		v := s.virtualDestination
		switch addr := stored.OfVirtualDestination(v.source); {
		case len(v.meshes) == 0:
		case addr.IsValid() && !taken[addr] && !env.topology.AddressTaken(addr):
			taken[addr], out[v.ref] = true, addr.String()
		default:
			added = append(added, v)
		}
	}
	for _, v := range added {
		addr := env.topology.FreeAddress(taken, v.ref.Name, v.ref.Namespace, "", "virtual-destination")
		taken[addr], out[v.ref] = true, addr.String()
	}
	return out
}

// claim assigns the host name in one mesh, or returns an issue.
func (h *hostnames) claim(v *virtualDestination, mesh *snapshot.MeshPlan) *snapshot.Issue {
	hostname := v.source.Spec.Hostname
	if service, ref := h.env.nameInUse(hostname, mesh); service != "" {
		issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname", "%s is the name of %s in mesh %s", hostname, service, mesh.Ref.Name).At("hostname").CausedBy(ref)
		return &issue
	}
	at := hostKey{mesh.Cluster, hostname}
	if other := h.owners[at]; other != nil && other != v {
		issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname, or export only one of them to the mesh",
			"hostname %s is in use by the older VirtualDestination %s.%s in mesh %s", hostname, other.ref.Name, other.ref.Namespace, mesh.Ref.Name).At("hostname").CausedBy(other.ref)
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
	return "", snapshot.Ref{}
}

// isName reports whether an address is a host name.
func isName(address string) bool {
	_, err := netip.ParseAddr(address)
	return err != nil
}
