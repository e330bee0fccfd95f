package policy

import (
	"net/netip"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// hostnames gives VirtualDestinations their host names and addresses, the older
// first. A service always keeps its own name.
type hostnames struct {
	world *world
	// held are the names in use in a cluster.
	held      map[hostKey]*virtualBinding
	addresses map[netip.Addr]bool
}

type hostKey struct{ cluster, hostname string }

func newHostnames(w *world) *hostnames {
	return &hostnames{world: w, held: map[hostKey]*virtualBinding{}, addresses: map[netip.Addr]bool{}}
}

// give returns the address, and for each mesh that sees the VirtualDestination
// what is called by its host name there already.
func (h *hostnames) give(b *virtualBinding) (string, []*snapshot.Issue) {
	taken := make([]*snapshot.Issue, len(b.exported))
	if len(b.exported) == 0 {
		return "", taken
	}
	address := h.world.topology.FreeAddress(h.addresses, b.ref.Name, b.ref.Namespace, "", "virtual-destination")
	h.addresses[address] = true
	for i, mesh := range b.exported {
		taken[i] = h.take(b, mesh)
	}
	return address.String(), taken
}

// take gives a name to a VirtualDestination in one mesh, unless it has it already.
func (h *hostnames) take(b *virtualBinding, mesh *snapshot.MeshPlan) *snapshot.Issue {
	hostname := b.source.Spec.Hostname
	if service := h.world.called(hostname, mesh); service != "" {
		issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname", "%s is the name of %s in mesh %s", hostname, service, mesh.Ref.Name)
		return &issue
	}
	at := hostKey{mesh.Cluster, hostname}
	if other := h.held[at]; other != nil && other != b {
		issue := snapshot.Errorf(snapshot.HostnameTaken, "choose another hostname, or do not export both there",
			"hostname %s has the older VirtualDestination %s.%s in mesh %s", hostname, other.ref.Name, other.ref.Namespace, mesh.Ref.Name)
		return &issue
	}
	h.held[at] = b
	return nil
}

// called names what a mesh knows by a host name; empty if nothing. Services
// outside all clusters count in every mesh: any may come to know them.
func (w *world) called(hostname string, mesh *snapshot.MeshPlan) string {
	for _, d := range w.externals {
		if slices.Contains(d.Spec.ExternalService.Hosts, hostname) {
			return "external service " + d.Name + "." + d.Namespace
		}
	}
	if service, ok := w.topology.Called(hostname, mesh); ok {
		return "service " + inventory.ServiceName(service)
	}
	return ""
}

// isName reports whether an address is a host name.
func isName(address string) bool {
	_, err := netip.ParseAddr(address)
	return err != nil
}
