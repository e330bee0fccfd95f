package policy

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Groups is which VirtualMesh holds which mesh, and what each mesh is then.
type Groups struct {
	// Meshes are ascending by name.
	Meshes []*snapshot.MeshPlan
	// VirtualMeshes are ascending by Ref.
	VirtualMeshes []*snapshot.VirtualMeshPlan

	byRef        map[commonv1.ObjectRef]*snapshot.MeshPlan
	settings     *settingsv1.Settings
	trustDomains map[string][]string
}

const defaultSuffix = "global"

// NewGroups joins meshes into VirtualMeshes. A mesh belongs to the oldest
// VirtualMesh that names it; the others are told. Settings may be nil.
func NewGroups(inv *Inventory, virtualMeshes []*networkingv1.VirtualMesh, settings *settingsv1.Settings) *Groups {
	g := &Groups{
		byRef: make(map[commonv1.ObjectRef]*snapshot.MeshPlan, len(inv.Meshes)), trustDomains: map[string][]string{}, settings: settings,
	}
	places, roots := map[[2]string]bool{}, map[[2]string]bool{}
	var osm []*snapshot.MeshPlan
	for _, m := range inv.Meshes {
		plan := newMeshPlan(m)
		if m.Spec.Osm != nil {
			osm = append(osm, plan)
		}
		place := [2]string{plan.Cluster, plan.Namespace}
		plan.Twin, places[place] = places[place], true
		root := [2]string{plan.Cluster, plan.RootNamespace}
		plan.RootTwin, roots[root] = roots[root], true
		g.Meshes = append(g.Meshes, plan)
		g.byRef[commonv1.ObjectRef{Name: m.Name, Namespace: m.Namespace}] = plan
		if m.Spec.Istio != nil && !slices.Contains(g.trustDomains[plan.Cluster], plan.TrustDomain) {
			g.trustDomains[plan.Cluster] = append(g.trustDomains[plan.Cluster], plan.TrustDomain)
		}
	}
	for _, plan := range osm {
		if g.trustDomains[plan.Cluster] == nil {
			g.trustDomains[plan.Cluster] = []string{snapshot.NoTrustDomain}
		}
	}
	byAge := slices.Clone(virtualMeshes)
	slices.SortFunc(byAge, func(a, b *networkingv1.VirtualMesh) int { return older(a, b) })
	for _, vm := range byAge {
		g.VirtualMeshes = append(g.VirtualMeshes, g.join(inv, vm))
	}
	slices.SortFunc(g.VirtualMeshes, func(a, b *snapshot.VirtualMeshPlan) int { return a.Ref.Compare(b.Ref) })
	for _, vm := range g.VirtualMeshes {
		g.openGateways(inv, vm)
	}
	return g
}

// mesh finds the plan of the mesh that a Destination belongs to; nil if there is none.
func (g *Groups) mesh(d *discoveryv1.Destination) *snapshot.MeshPlan {
	if d.Spec.Mesh == nil {
		return nil
	}
	return g.byRef[*d.Spec.Mesh]
}

func newMeshPlan(m *discoveryv1.Mesh) *snapshot.MeshPlan {
	plan := &snapshot.MeshPlan{Ref: snapshot.RefOf(snapshot.Mesh, m), Mesh: m, TrustDomain: snapshot.DefaultTrustDomain}
	var installation discoveryv1.MeshInstallation
	switch {
	case m.Spec.Istio != nil:
		installation = m.Spec.Istio.Installation
		if m.Spec.Istio.TrustDomain != "" {
			plan.TrustDomain = m.Spec.Istio.TrustDomain
		}
		plan.TrustAliases, plan.TrustPeers = m.Spec.Istio.TrustDomainAliases, m.Spec.Istio.PeerTrustDomains
	case m.Spec.Osm != nil:
		installation = m.Spec.Osm.Installation
		planOSM(plan, m.Spec.Osm)
		plan.Open = m.Spec.Osm.PermissiveTrafficPolicyMode
	}
	plan.Cluster, plan.Namespace, plan.RootNamespace = installation.Cluster, installation.Namespace, installation.Namespace
	if m.Spec.Istio != nil && m.Spec.Istio.RootNamespace != "" {
		plan.RootNamespace = m.Spec.Istio.RootNamespace
	}
	return plan
}

// join makes the meshes that a VirtualMesh names its members, as far as they
// exist and are free.
func (g *Groups) join(inv *Inventory, vm *networkingv1.VirtualMesh) *snapshot.VirtualMeshPlan {
	plan := &snapshot.VirtualMeshPlan{Ref: snapshot.RefOf(snapshot.VirtualMesh, vm), VirtualMesh: vm}
	for _, name := range vm.Spec.Meshes {
		target := snapshot.Ref{Kind: snapshot.Mesh, Namespace: name.Namespace, Name: name.Name}
		mesh := g.byRef[name]
		switch {
		case mesh == nil:
			plan.Issues = append(plan.Issues, on(plan.Ref, target, failure(snapshot.MeshNotFound,
				"register its cluster, or remove it from spec.meshes; `meshctl describe mesh` lists the meshes there are",
				"mesh %s.%s was not discovered", name.Name, name.Namespace)))
		case mesh.VirtualMesh == vm:
			continue // named twice
		case mesh.VirtualMesh != nil:
			plan.Issues = append(plan.Issues, on(plan.Ref, target, failure(snapshot.MeshClaimed,
				"remove it from one of the two", "mesh %s.%s is in the older VirtualMesh %s.%s already",
				name.Name, name.Namespace, mesh.VirtualMesh.Name, mesh.VirtualMesh.Namespace)))
		default:
			mesh.VirtualMesh = vm
			plan.Members = append(plan.Members, mesh)
		}
	}
	slices.SortFunc(plan.Members, func(a, b *snapshot.MeshPlan) int { return a.Ref.Compare(b.Ref) })
	for _, member := range plan.Members {
		g.settle(inv, plan, member)
	}
	shareGateways(plan)
	plan.Issues = append(plan.Issues, g.selectorIssues(inv, plan)...)
	plan.Issues = append(plan.Issues, trustIssues(plan)...)
	plan.Issues = append(plan.Issues, foreignIssues(plan)...)
	plan.Issues = append(plan.Issues, g.gatewaySelectorIssues(inv, plan)...)
	return plan
}

// settle gives a member what it has from its VirtualMesh.
func (g *Groups) settle(inv *Inventory, plan *snapshot.VirtualMeshPlan, member *snapshot.MeshPlan) {
	if member.Mesh.Spec.Osm != nil {
		settleOSM(plan, member)
		return
	}
	spec := &plan.VirtualMesh.Spec
	member.HostnameSuffix = defaultSuffix
	if spec.Federation != nil && spec.Federation.HostnameSuffix != "" {
		member.HostnameSuffix = spec.Federation.HostnameSuffix
	}
	if spec.GlobalAccessPolicy == networkingv1.GlobalAccessPolicyEnabled {
		member.DenyByDefault = &snapshot.Origin{Ref: plan.Ref, Field: "globalAccessPolicy"}
	}
	if member.Mesh.Spec.Istio == nil {
		return
	}
	if spec.Federation != nil && !spec.Federation.FlatNetwork && federable(plan) > 1 {
		gateways, issues := findGateways(inv, spec.Federation, member, detector(g.settings, member.Cluster))
		member.Gateways = gateways
		for _, issue := range issues {
			plan.Issues = append(plan.Issues, on(plan.Ref, member.Ref, issue))
		}
	}
	if federates(spec.Federation) && !resolvesSuffix(member) {
		plan.Issues = append(plan.Issues, on(plan.Ref, member.Ref, failure(snapshot.SmartDNSMissing,
			"set ISTIO_META_DNS_CAPTURE to \"true\" in its meshConfig.defaultConfig.proxyMetadata, or end hostnameSuffix in \"global\"",
			"mesh %s cannot resolve host names ending in %q: its proxies do not capture DNS", member.Ref.Name, member.HostnameSuffix)))
	}
}

// federable counts the members that others can reach by a gateway.
func federable(plan *snapshot.VirtualMeshPlan) int {
	n := 0
	for _, m := range plan.Members {
		if m.Mesh.Spec.Istio != nil {
			n++
		}
	}
	return n
}

// federates reports whether a VirtualMesh makes services visible in other meshes.
func federates(f *networkingv1.Federation) bool {
	return f != nil && (len(f.Selectors) > 0 || f.Permissive != nil)
}

// resolvesSuffix reports whether callers in a mesh can resolve federated names:
// anything where proxies answer DNS, *.global where a DNS server was set up for it.
func resolvesSuffix(m *snapshot.MeshPlan) bool { return resolves(m, m.HostnameSuffix) }

// resolves is resolvesSuffix for any name, or its end.
func resolves(m *snapshot.MeshPlan, name string) bool {
	labels := strings.Split(name, ".")
	return labels[len(labels)-1] == defaultSuffix || (m.Mesh.Spec.Istio != nil && m.Mesh.Spec.Istio.SmartDnsProxyingEnabled)
}

// trustIssues says what becomes of mtlsConfig, and which members cannot be told
// apart by their trust domains.
func trustIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	mtls := plan.VirtualMesh.Spec.MtlsConfig
	if mtls == nil {
		return nil
	}
	if mtls.Limited != nil {
		return []snapshot.Issue{on(plan.Ref, snapshot.Ref{}, failure(snapshot.FieldUnsupported,
			"use mtlsConfig.shared, or manage the trust between the meshes yourself and omit mtlsConfig",
			"mtlsConfig.limited is not available"))}
	}
	return []snapshot.Issue{on(plan.Ref, snapshot.Ref{}, warning(snapshot.TrustUnmanaged,
		"give the meshes a common root certificate by hand, for example as Secret cacerts in each mesh's namespace",
		"mtlsConfig has no effect yet: certificates are not issued"))}
}
