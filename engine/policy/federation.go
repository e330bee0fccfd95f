package policy

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// federate decides, for every Destination by its index, where else it is seen;
// nil where it is not. Before gives the same answers of an earlier call, which
// are reused where they still hold. The addresses given out are marked as taken.
func federate(inv *Inventory, groups *Groups, before map[string]*snapshot.Federation, taken map[netip.Addr]bool) []*snapshot.Federation {
	out := make([]*snapshot.Federation, len(inv.Destinations))
	byVM := map[*networkingv1.VirtualMesh]*exporter{}
	for _, vm := range groups.VirtualMeshes {
		if e := newExporter(vm); e != nil {
			byVM[vm.VirtualMesh] = e
		}
	}
	for i, d := range inv.Destinations {
		mesh := groups.mesh(d)
		if mesh == nil || mesh.VirtualMesh == nil || d.Spec.KubeService == nil {
			continue
		}
		e := byVM[mesh.VirtualMesh]
		if e == nil || mesh.Mesh.Spec.Istio == nil || !e.reachable(mesh) || isGateway(mesh, d) {
			continue
		}
		f := e.federation(d, mesh)
		if f == nil {
			continue
		}
		f.Address = virtualIP(d.Spec.KubeService.Ref, taken)
		if old := before[d.Name]; old != nil && sameFederation(old, f) {
			f = old
		}
		out[i] = f
	}
	return out
}

// reachable: other meshes need a gateway to reach a mesh, unless they see its pods.
func (e *exporter) reachable(mesh *snapshot.MeshPlan) bool {
	return e.plan.VirtualMesh.Spec.Federation.FlatNetwork || len(mesh.Gateways) > 0
}

// isGateway: nobody calls a gateway by a federated name.
func isGateway(mesh *snapshot.MeshPlan, d *discoveryv1.Destination) bool {
	return slices.ContainsFunc(mesh.Gateways, func(gw snapshot.GatewayPlan) bool { return gw.Destination.Name == d.Name })
}

// exporter answers for one VirtualMesh which meshes see a Destination by its
// federated name. Meshes of its own cluster, such as another revision of the
// control plane, know it by its local one.
type exporter struct {
	plan      *snapshot.VirtualMeshPlan
	rules     []exportRule
	keepAlive *snapshot.Owned[snapshot.KeepAlive]
	others    map[*snapshot.MeshPlan][]*snapshot.MeshPlan
}

type exportRule struct {
	selectors []commonv1.DestinationSelector
	to        []*snapshot.MeshPlan // nil means all members
	field     string
}

func newExporter(plan *snapshot.VirtualMeshPlan) *exporter {
	f := plan.VirtualMesh.Spec.Federation
	if !federates(f) {
		return nil
	}
	e := &exporter{plan: plan, others: map[*snapshot.MeshPlan][]*snapshot.MeshPlan{}}
	// Only meshes that can render and resolve a federated name take part.
	able := slices.DeleteFunc(slices.Clone(plan.Members), func(m *snapshot.MeshPlan) bool {
		return m.Mesh.Spec.Istio == nil || !resolvesSuffix(m)
	})
	for i, s := range f.Selectors {
		rule := exportRule{selectors: s.DestinationSelectors, field: "federation.selectors[" + strconv.Itoa(i) + "]"}
		for _, m := range able {
			if slices.Contains(s.Meshes, commonv1.ObjectRef{Name: m.Ref.Name, Namespace: m.Ref.Namespace}) {
				rule.to = append(rule.to, m)
			}
		}
		if len(s.Meshes) > 0 && rule.to == nil {
			continue
		}
		e.rules = append(e.rules, rule)
	}
	if len(f.Selectors) == 0 {
		e.rules = append(e.rules, exportRule{field: "federation.permissive"})
	}
	for _, m := range plan.Members {
		e.others[m] = slices.DeleteFunc(slices.Clone(able), func(o *snapshot.MeshPlan) bool { return o.Cluster == m.Cluster })
	}
	e.keepAlive = keepAlive(plan.Ref, f)
	return e
}

// keepAlive is what a VirtualMesh asks for on connections between clusters.
func keepAlive(vm snapshot.Ref, f *networkingv1.Federation) *snapshot.Owned[snapshot.KeepAlive] {
	if f == nil || f.TcpKeepalive == nil {
		return nil
	}
	k := f.TcpKeepalive
	return &snapshot.Owned[snapshot.KeepAlive]{
		Value:  snapshot.KeepAlive{Probes: k.Probes, Time: duration(k.Time), Interval: duration(k.Interval)},
		Origin: snapshot.Origin{Ref: vm, Field: "federation.tcpKeepalive"},
	}
}

func (e *exporter) federation(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) *snapshot.Federation {
	var to []*snapshot.MeshPlan
	field := ""
	for _, rule := range e.rules {
		if !matchesDestination(rule.selectors, d) {
			continue
		}
		if field == "" {
			field = rule.field
		}
		if rule.to == nil {
			to = e.others[mesh]
			break
		}
		for _, m := range rule.to {
			if m.Cluster != mesh.Cluster && !slices.Contains(to, m) {
				to = append(slices.Clip(to), m)
			}
		}
	}
	if len(to) == 0 {
		return nil
	}
	if !slices.IsSortedFunc(to, compareMeshes) {
		slices.SortFunc(to, compareMeshes)
	}
	service := d.Spec.KubeService.Ref
	return &snapshot.Federation{
		Hostname:  service.Name + "." + service.Namespace + ".svc." + service.ClusterName + "." + mesh.HostnameSuffix,
		To:        to,
		Flat:      e.plan.VirtualMesh.Spec.Federation.FlatNetwork,
		KeepAlive: e.keepAlive,
		Origin:    snapshot.Origin{Ref: e.plan.Ref, Field: field},
	}
}

func compareMeshes(a, b *snapshot.MeshPlan) int { return a.Ref.Compare(b.Ref) }

func sameFederation(a, b *snapshot.Federation) bool {
	return a.Hostname == b.Hostname && a.Address == b.Address && a.Flat == b.Flat && a.Origin == b.Origin &&
		slices.Equal(a.To, b.To) && (a.KeepAlive == b.KeepAlive || (a.KeepAlive != nil && b.KeepAlive != nil && *a.KeepAlive == *b.KeepAlive))
}

// virtualIP gives a service an address that is the same in every mesh.
func virtualIP(service commonv1.ClusterObjectRef, taken map[netip.Addr]bool) string {
	addr := freeAddress(func(a netip.Addr) bool { return taken[a] }, service.Name, service.Namespace, service.ClusterName, "kube-service")
	taken[addr] = true
	return addr.String()
}

// freeAddress gives an address in 240.0.0.0/4: FNV-1 over the parts, the hash's
// bytes in little-endian order, the first one raised into the range. Where that
// address is taken already, it is the next free one after it.
func freeAddress(taken func(netip.Addr) bool, parts ...string) netip.Addr {
	h := fnv.New32()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // a hash never fails
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], h.Sum32())
	b[0] |= 0xF0
	addr := netip.AddrFrom4(b)
	for taken(addr) || b == [4]byte{255, 255, 255, 255} {
		next := (binary.BigEndian.Uint32(b[:]) + 1) | 0xF0000000
		binary.BigEndian.PutUint32(b[:], next)
		addr = netip.AddrFrom4(b)
	}
	return addr
}
