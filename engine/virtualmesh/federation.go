package virtualmesh

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// federate decides for every Destination which other meshes see it. Equal federations
// of the last Topology are reused.
func (t *Topology) federate(needs *Needs, stored Addresses, before *Topology) {
	earlier := map[string]*snapshot.Federation{}
	if before != nil {
		for i, f := range before.federations {
			if f != nil {
				earlier[before.inv.Destinations[i].Name] = f
			}
		}
	}
	t.federations = make([]*snapshot.Federation, len(t.inv.Destinations))
	t.unanswered = map[int]snapshot.Unfederated{}
	byVM := map[*networkingv1.VirtualMesh]*exporter{}
	for _, vm := range t.VirtualMeshes {
		if e := newExporter(vm); e != nil {
			byVM[vm.VirtualMesh] = e
		}
	}
	for i, d := range t.inv.Destinations {
		mesh := t.MeshOf(d)
		if mesh == nil || mesh.VirtualMesh == nil || d.Spec.KubeService == nil {
			continue
		}
		e := byVM[mesh.VirtualMesh]
		if e == nil || !e.reachable(mesh) {
			continue
		}
		if isGateway(mesh, d, t.gatewayPods) {
			e.warnOfGateway(d)
			continue
		}
		f := e.federation(d, mesh)
		if why := unanswered(d.Spec.KubeService, mesh); f != nil && why.Why != "" {
			t.unanswered[i] = why
			e.warnOfUnanswered(d, why)
			continue
		}
		t.federations[i] = f
	}
	reportAmbient(t)
	importDeclared(t, byVM, needs, before)
	t.keepToLimits(stored)
	var addresses []string
	addresses, t.addresses = t.addressesOf(stored)
	for i, address := range addresses {
		now := t.federations[i]
		if now == nil {
			continue
		}
		now.Address = address
		if old := earlier[t.inv.Destinations[i].Name]; old != nil && sameFederation(old, now) {
			t.federations[i] = old
		}
	}
}

// Federation says which other meshes see a Destination; nil if none does.
func (t *Topology) Federation(i int) *snapshot.Federation { return t.federations[i] }

// reachable reports whether other meshes can reach a mesh: through gateways, or
// directly in a flat network.
func (e *exporter) reachable(mesh *snapshot.MeshPlan) bool {
	if _, federates := e.otherMeshes[mesh]; !federates {
		return false
	}
	return isFlat(e.plan.VirtualMesh) || len(mesh.Gateways) > 0
}

// warnOfGateway warns if a selector names a gateway, which is not federated.
func (e *exporter) warnOfGateway(d *discoveryv1.Destination) {
	e.warnIfNamed(d, "which is a gateway: its pods do not accept the mutual TLS of callers in other clusters",
		"remove it, and federate the services behind it; callers elsewhere can use the gateway's external address")
}

// warnIfNamed warns if a selector names a service that is not federated, for what follows its name.
func (e *exporter) warnIfNamed(d *discoveryv1.Destination, why, hint string) {
	service := d.Spec.KubeService.Ref
	for _, rule := range e.rules {
		for _, s := range rule.selectors {
			if s.KubeServiceRefs != nil && slices.Contains(s.KubeServiceRefs.Services, service) {
				e.plan.Issues = append(e.plan.Issues, snapshot.Warnf(snapshot.FieldUnsupported, hint,
					"%s names %s, %s", rule.field, inventory.ServiceName(service), why).At(rule.field).On(e.plan.Ref, snapshot.Ref{}))
				return
			}
		}
	}
}

// exporter decides for one VirtualMesh which meshes see a Destination by its
// federated name. Meshes of its own cluster, such as another revision of the control
// plane, use the local name.
type exporter struct {
	plan      *snapshot.VirtualMeshPlan
	rules     []exportRule
	keepAlive *snapshot.WithOrigin[snapshot.KeepAlive]
	gate      *gate
	// otherMeshes see the services of a mesh that takes part.
	otherMeshes map[*snapshot.MeshPlan][]*snapshot.MeshPlan
	// apart are the otherMeshes that share no root with a mesh, so that their requests
	// fail, and rootIssues say so.
	apart      map[*snapshot.MeshPlan][]*snapshot.MeshPlan
	rootIssues []snapshot.Issue
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
	e := &exporter{plan: plan, otherMeshes: map[*snapshot.MeshPlan][]*snapshot.MeshPlan{}, gate: newGate(plan)}
	plan.Issues = append(plan.Issues, pendingIssues(plan, e.gate)...)
	// Only meshes that can render and resolve a federated name take part.
	able := slices.DeleteFunc(slices.Clone(plan.Members), func(m *snapshot.MeshPlan) bool {
		return !canFederate(m) || !resolvesSuffix(m) || m.Limited && len(m.Gateways) == 0
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
	switch {
	case len(f.Selectors) > 0:
	case f.Permissive != nil:
		e.rules = append(e.rules, exportRule{field: "federation.permissive"})
	default:
		e.rules = append(e.rules, exportRule{field: "federation.mode"})
	}
	for _, m := range plan.Members {
		if canFederate(m) {
			e.otherMeshes[m] = slices.DeleteFunc(slices.Clone(able), func(o *snapshot.MeshPlan) bool { return !sees(o, m) || !e.gate.opens(o, m) })
		}
	}
	if issue, found := plan.RootIssue(); found {
		e.rootIssues, e.apart = []snapshot.Issue{issue}, map[*snapshot.MeshPlan][]*snapshot.MeshPlan{}
		for m, others := range e.otherMeshes {
			e.apart[m] = slices.DeleteFunc(slices.Clone(others), m.MayShareRoot)
		}
	}
	e.keepAlive = KeepAlive(plan.Ref, f)
	return e
}

// sees reports whether a mesh can see the services of another one under federated
// names. Each kind of mesh has its own protocol between clusters.
func sees(mesh, other *snapshot.MeshPlan) bool {
	return mesh.Cluster != other.Cluster && mesh.Dialect == other.Dialect
}

// KeepAlive is the keep-alive of a VirtualMesh for connections between clusters; nil
// if there is none.
func KeepAlive(vm snapshot.Ref, f *networkingv1.Federation) *snapshot.WithOrigin[snapshot.KeepAlive] {
	if f == nil || f.TcpKeepalive == nil {
		return nil
	}
	k := f.TcpKeepalive
	return &snapshot.WithOrigin[snapshot.KeepAlive]{
		Value:  snapshot.KeepAlive{Probes: k.Probes, Time: ptr.Deref(k.Time, metav1.Duration{}).Duration, Interval: ptr.Deref(k.Interval, metav1.Duration{}).Duration},
		Origin: snapshot.Origin{Ref: vm, Field: "federation.tcpKeepalive"},
	}
}

func (e *exporter) federation(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) *snapshot.Federation {
	var to []*snapshot.MeshPlan
	field := ""
	for _, rule := range e.rules {
		if !inventory.SelectsDestination(rule.selectors, d) {
			continue
		}
		if field == "" {
			field = rule.field
		}
		if rule.to == nil {
			to = e.otherMeshes[mesh]
			break
		}
		for _, m := range rule.to {
			if sees(m, mesh) && e.gate.opens(m, mesh) && !slices.Contains(to, m) {
				to = append(slices.Clip(to), m)
			}
		}
	}
	if len(to) == 0 {
		return nil
	}
	if !slices.IsSortedFunc(to, CompareMeshes) {
		slices.SortFunc(to, CompareMeshes)
	}
	service := d.Spec.KubeService.Ref
	return &snapshot.Federation{
		Hostname:  service.Name + "." + service.Namespace + ".svc." + service.ClusterName + "." + mesh.HostnameSuffix,
		To:        to,
		Flat:      isFlat(e.plan.VirtualMesh),
		Limited:   mesh.Limited,
		KeepAlive: e.keepAlive,
		Origin:    snapshot.Origin{Ref: e.plan.Ref, Field: field},
		Issues:    e.issuesOf(mesh, to),
	}
}

// issuesOf are those because of which some meshes cannot call the services of a mesh.
func (e *exporter) issuesOf(mesh *snapshot.MeshPlan, to []*snapshot.MeshPlan) []snapshot.Issue {
	if slices.ContainsFunc(e.apart[mesh], func(m *snapshot.MeshPlan) bool { return slices.Contains(to, m) }) {
		return e.rootIssues
	}
	return nil
}

// CompareMeshes orders meshes by Ref.
func CompareMeshes(a, b *snapshot.MeshPlan) int { return a.Ref.Compare(b.Ref) }

func sameFederation(a, b *snapshot.Federation) bool {
	return a.Hostname == b.Hostname && a.Address == b.Address && a.Flat == b.Flat && a.Limited == b.Limited && a.Origin == b.Origin &&
		slices.Equal(a.To, b.To) && slices.EqualFunc(a.ImportedBy, b.ImportedBy, slices.Equal) && slices.Equal(a.Issues, b.Issues) && (a.KeepAlive == b.KeepAlive || (a.KeepAlive != nil && b.KeepAlive != nil && *a.KeepAlive == *b.KeepAlive))
}
