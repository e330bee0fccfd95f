package policy

import (
	"net/netip"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// hostnames assigns host names and addresses to VirtualDestinations, oldest first. A
// service always keeps its own name.
type hostnames struct {
	env *environment
	// owners are the VirtualDestinations by cluster and host name.
	owners    map[hostKey]*virtualDestination
	addresses map[netip.Addr]bool
}

type hostKey struct{ cluster, hostname string }

func newHostnames(env *environment) *hostnames {
	return &hostnames{env: env, owners: map[hostKey]*virtualDestination{}, addresses: map[netip.Addr]bool{}}
}

// assign returns the address, and for each mesh an issue if something else has the
// host name there.
func (h *hostnames) assign(v *virtualDestination) (string, []*snapshot.Issue) {
	taken := make([]*snapshot.Issue, len(v.meshes))
	if len(v.meshes) == 0 {
		return "", taken
	}
	address := h.env.topology.FreeAddress(h.addresses, v.ref.Name, v.ref.Namespace, "", "virtual-destination")
	h.addresses[address] = true
	for i, mesh := range v.meshes {
		taken[i] = h.claim(v, mesh)
	}
	return address.String(), taken
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
