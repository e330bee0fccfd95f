package policy

import (
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
	services := make([]*commonv1.ClusterObjectRef, len(inv.Destinations))
	byVM := map[*networkingv1.VirtualMesh]*exporter{}
	for _, vm := range groups.VirtualMeshes {
		if e := newExporter(vm); e != nil {
			byVM[vm.VirtualMesh] = e
		}
	}
	gateways := gatewayPods(inv)
	for i, d := range inv.Destinations {
		mesh := groups.mesh(d)
		if mesh == nil || mesh.VirtualMesh == nil || d.Spec.KubeService == nil {
			continue
		}
		e := byVM[mesh.VirtualMesh]
		if e == nil || mesh.Mesh.Spec.Istio == nil || !e.reachable(mesh) {
			continue
		}
		if isGateway(mesh, d, gateways) {
			e.leaveOut(d)
			continue
		}
		if out[i] = e.federation(d, mesh); out[i] != nil {
			services[i] = &d.Spec.KubeService.Ref
		}
	}
	for i, address := range giveAddresses(services, taken) {
		if out[i] == nil {
			continue
		}
		out[i].Address = address
		if old := before[inv.Destinations[i].Name]; old != nil && sameFederation(old, out[i]) {
			out[i] = old
		}
	}
	return out
}

// reachable: other meshes need a gateway to reach a mesh, unless they see its pods.
func (e *exporter) reachable(mesh *snapshot.MeshPlan) bool {
	return e.plan.VirtualMesh.Spec.Federation.FlatNetwork || len(mesh.Gateways) > 0
}

// isGateway: nobody calls a gateway by a federated name, whether it is in use or
// not. The pods of gateways take connections as Gateways of the mesh say, and not
// the mutual TLS with which those from other clusters arrive.
func isGateway(mesh *snapshot.MeshPlan, d *discoveryv1.Destination, pods map[podPlace][]map[string]string) bool {
	service := d.Spec.KubeService
	return service.WorkloadSelectorLabels[ingressLabel] == eastWestGateway ||
		slices.ContainsFunc(mesh.Gateways, func(gw snapshot.GatewayPlan) bool { return gw.Destination.Name == d.Name }) ||
		slices.ContainsFunc(pods[podPlace{service.Ref.ClusterName, service.Ref.Namespace}], func(labels map[string]string) bool {
			return len(service.WorkloadSelectorLabels) > 0 && subset(service.WorkloadSelectorLabels, labels)
		})
}

// gatewayPods are the labels of pods that are gateways of whatever sort.
func gatewayPods(inv *Inventory) map[podPlace][]map[string]string {
	out := map[podPlace][]map[string]string{}
	for _, w := range inv.Workloads {
		if k := w.Spec.Kubernetes; k != nil && isGatewayPod(k, nil) {
			out[placeOf(k)] = append(out[placeOf(k)], k.PodLabels)
		}
	}
	return out
}

// leaveOut warns if somebody asked for a gateway by its name.
func (e *exporter) leaveOut(d *discoveryv1.Destination) {
	service := d.Spec.KubeService.Ref
	for _, rule := range e.rules {
		for _, s := range rule.selectors {
			if s.KubeServiceRefs != nil && slices.Contains(s.KubeServiceRefs.Services, service) {
				e.plan.Issues = append(e.plan.Issues, on(e.plan.Ref, snapshot.Ref{}, warning(snapshot.FieldUnsupported,
					"remove it, and federate the services behind it; callers elsewhere can use the gateway's external address",
					"%s names %s, which is a gateway: its pods do not take the mutual TLS of callers in other clusters", rule.field, key(service))))
				return
			}
		}
	}
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
