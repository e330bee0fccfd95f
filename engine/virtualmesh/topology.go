package virtualmesh

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Topology says which VirtualMesh holds which mesh, what each mesh is, and how the
// meshes see each other's services. It never changes once built.
type Topology struct {
	// Meshes are ascending by name.
	Meshes []*snapshot.MeshPlan
	// VirtualMeshes are ascending by Ref.
	VirtualMeshes []*snapshot.VirtualMeshPlan

	inv          *inventory.Inventory
	settings     *settingsv1.Settings
	scope        Scope
	byRef        map[commonv1.ObjectRef]*snapshot.MeshPlan
	trustDomains map[string][]string
	// members are the meshes of each VirtualMesh.
	members map[*networkingv1.VirtualMesh]map[commonv1.ObjectRef]bool
	// gateways are the services that are labelled as gateways, by mesh.
	gateways map[commonv1.ObjectRef][]*discoveryv1.Destination
	// gatewayPods are the labels of the pods of all gateways, and otherPods those of all other pods.
	gatewayPods, otherPods podLabels
	// federations are by index of the Destination; addresses are in use by them.
	federations []*snapshot.Federation
	addresses   map[netip.Addr]bool
	// leftOut are the services that are beyond a limit, reasons why, and selected the
	// federations with those; nil if none are.
	leftOut map[int]limit
	// unanswered are the services that nobody would answer for under a federated name.
	unanswered map[int]snapshot.Unfederated
	reasons    map[exceeded]string
	selected   []*snapshot.Federation
	// offers are by index of the Destination; nil without a VirtualMesh in mode DECLARED. offersOf are those of each mesh.
	offers   []*snapshot.Offer
	offersOf map[*snapshot.MeshPlan][]*snapshot.Offer
}

// New joins meshes into VirtualMeshes and federates their services. A
// mesh belongs to the oldest VirtualMesh that names it. Settings may be nil.
// Services keep the addresses that are stored. Needs are what VirtualMeshes in mode DECLARED import, and may be nil. Meshes and federations that are the same
// as in an earlier Topology, which may be nil, are the same objects.
func New(
	inv *inventory.Inventory, virtualMeshes []*networkingv1.VirtualMesh, settings *settingsv1.Settings, scope Scope, dialects []*snapshot.Dialect, stored Addresses, facts TrustFacts, needs *Needs, before *Topology,
) *Topology {
	t := &Topology{
		inv: inv, settings: settings, scope: scope,
		byRef:        make(map[commonv1.ObjectRef]*snapshot.MeshPlan, len(inv.Meshes)),
		trustDomains: map[string][]string{},
	}
	t.addMeshes(dialects)
	t.gateways = t.labelledGateways()
	t.gatewayPods, t.otherPods = t.dividePods()
	byAge := slices.Clone(virtualMeshes)
	slices.SortFunc(byAge, func(a, b *networkingv1.VirtualMesh) int { return inventory.CompareAge(a, b) })
	for _, vm := range byAge {
		t.VirtualMeshes = append(t.VirtualMeshes, t.addVirtualMesh(vm, facts))
	}
	slices.SortFunc(t.VirtualMeshes, func(a, b *snapshot.VirtualMeshPlan) int { return a.Ref.Compare(b.Ref) })
	for _, vm := range t.VirtualMeshes {
		t.openGateways(vm)
	}
	t.addTrustDomains()
	t.members = make(map[*networkingv1.VirtualMesh]map[commonv1.ObjectRef]bool, len(t.VirtualMeshes))
	for _, mesh := range t.Meshes {
		if vm := mesh.VirtualMesh; vm != nil {
			if t.members[vm] == nil {
				t.members[vm] = map[commonv1.ObjectRef]bool{}
			}
			t.members[vm][commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}] = true
		}
	}
	t.reuseMeshes(before)
	t.federate(needs, stored, before)
	t.countLoads()
	t.warnOfLoads()
	return t
}

// addMeshes adds each mesh, as it is without a VirtualMesh.
func (t *Topology) addMeshes(dialects []*snapshot.Dialect) {
	places, roots := map[[2]string]bool{}, map[[2]string]bool{}
	for _, m := range t.inv.Meshes {
		plan := newMeshPlan(m, snapshot.DialectOf(dialects, m))
		plan.DNS.AsksServers = t.inv.AsksServers(commonv1.ObjectRef{Name: m.Name, Namespace: m.Namespace})
		place := [2]string{plan.Cluster, plan.Namespace}
		plan.SharesNamespace, places[place] = places[place], true
		root := [2]string{plan.Cluster, plan.RootNamespace}
		plan.SharesRootNamespace, roots[root] = roots[root], true
		t.Meshes = append(t.Meshes, plan)
		t.byRef[commonv1.ObjectRef{Name: m.Name, Namespace: m.Namespace}] = plan
	}
}

// addTrustDomains notes the trust domains of each cluster, as policies see them.
func (t *Topology) addTrustDomains() {
	for _, plan := range t.Meshes {
		if domain := plan.IdentityDomain(); plan.Dialect.SPIFFE && !slices.Contains(t.trustDomains[plan.Cluster], domain) {
			t.trustDomains[plan.Cluster] = append(t.trustDomains[plan.Cluster], domain)
		}
	}
	for _, plan := range t.Meshes {
		if t.trustDomains[plan.Cluster] == nil {
			t.trustDomains[plan.Cluster] = []string{snapshot.NoTrustDomain}
		}
	}
}

// Mesh finds a mesh; nil if there is none.
func (t *Topology) Mesh(ref commonv1.ObjectRef) *snapshot.MeshPlan { return t.byRef[ref] }

// MeshOf finds the mesh that a Destination belongs to; nil if there is none.
func (t *Topology) MeshOf(d *discoveryv1.Destination) *snapshot.MeshPlan {
	if d.Spec.Mesh == nil {
		return nil
	}
	return t.byRef[*d.Spec.Mesh]
}

// CallingMeshes are the meshes whose workloads can call the selected Destinations:
// their own, and the others in the same VirtualMeshes. The answer may be shared: do not change it.
func (t *Topology) CallingMeshes(selected []int) map[commonv1.ObjectRef]bool {
	meshes := map[commonv1.ObjectRef]bool{}
	virtual := map[*networkingv1.VirtualMesh]bool{}
	alone := false // in no VirtualMesh
	for _, i := range selected {
		if mesh := t.MeshOf(t.inv.Destinations[i]); mesh != nil {
			meshes[*t.inv.Destinations[i].Spec.Mesh] = true
			if mesh.VirtualMesh != nil {
				virtual[mesh.VirtualMesh] = true
			} else {
				alone = true
			}
		}
	}
	if len(virtual) == 1 && !alone {
		for vm := range virtual {
			return t.members[vm]
		}
	}
	for _, mesh := range t.Meshes {
		if mesh.VirtualMesh != nil && virtual[mesh.VirtualMesh] {
			meshes[commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}] = true
		}
	}
	return meshes
}

// reuseMeshes replaces meshes by the equal ones of the last Topology.
func (t *Topology) reuseMeshes(before *Topology) {
	if before == nil {
		return
	}
	replaced := map[*snapshot.MeshPlan]*snapshot.MeshPlan{}
	for i, m := range t.Meshes {
		ref := commonv1.ObjectRef{Name: m.Ref.Name, Namespace: m.Ref.Namespace}
		if was := before.byRef[ref]; was != nil && reflect.DeepEqual(was, m) {
			t.Meshes[i], t.byRef[ref], replaced[m] = was, was, was
		}
	}
	for _, vm := range t.VirtualMeshes {
		for i, m := range vm.Members {
			if was := replaced[m]; was != nil {
				vm.Members[i] = was
			}
		}
	}
}

func newMeshPlan(m *discoveryv1.Mesh, dialect *snapshot.Dialect) *snapshot.MeshPlan {
	_, installation := snapshot.MeshType(&m.Spec)
	plan := &snapshot.MeshPlan{
		Ref: snapshot.RefOf(snapshot.Mesh, m), Mesh: m, Dialect: dialect, TrustDomain: snapshot.DefaultTrustDomain,
		Cluster: installation.Cluster, Namespace: installation.Namespace, RootNamespace: installation.Namespace,
	}
	if dialect.Describe != nil {
		dialect.Describe(plan)
	}
	if plan.AccessSetting != nil && !plan.Open {
		plan.DenyByDefault = plan.AccessSetting
	}
	return plan
}

// addVirtualMesh makes meshes members of a VirtualMesh, if they exist and are in no
// other.
func (t *Topology) addVirtualMesh(vm *networkingv1.VirtualMesh, facts TrustFacts) *snapshot.VirtualMeshPlan {
	plan := &snapshot.VirtualMeshPlan{Ref: snapshot.RefOf(snapshot.VirtualMesh, vm), VirtualMesh: vm, NotCounted: !t.scope.Counts(vm.Namespace)}
	plan.Issues = t.scope.Issues(plan.Ref)
	if plan.NotCounted {
		return plan
	}
	for _, name := range vm.Spec.Meshes {
		target := snapshot.Ref{Kind: snapshot.Mesh, Namespace: name.Namespace, Name: name.Name}
		mesh := t.byRef[name]
		switch {
		case mesh == nil:
			plan.Issues = append(plan.Issues, snapshot.Errorf(snapshot.MeshNotFound,
				"register its cluster, or remove it from spec.meshes; `meshctl describe mesh` lists the meshes there are",
				"mesh %s.%s was not discovered", name.Name, name.Namespace).At("meshes").On(plan.Ref, target))
		case mesh.VirtualMesh == vm:
			continue // named twice
		case mesh.VirtualMesh != nil:
			plan.Issues = append(plan.Issues, snapshot.Errorf(snapshot.MeshClaimed,
				"remove it from one of the two", "mesh %s.%s is already in the older VirtualMesh %s.%s",
				name.Name, name.Namespace, mesh.VirtualMesh.Name, mesh.VirtualMesh.Namespace).
				At("meshes").CausedBy(snapshot.RefOf(snapshot.VirtualMesh, mesh.VirtualMesh)).On(plan.Ref, target))
		default:
			mesh.VirtualMesh = vm
			plan.Members = append(plan.Members, mesh)
		}
	}
	slices.SortFunc(plan.Members, func(a, b *snapshot.MeshPlan) int { return a.Ref.Compare(b.Ref) })
	recorded, known := facts.pinsOf(vm)
	pins := pinTrustDomains(plan, recorded)
	if !known {
		pins = nil
	}
	for _, member := range plan.Members {
		t.configureMember(plan, member, facts.served(member))
	}
	shareGateways(plan)
	plan.Issues = append(plan.Issues, t.federationSelectorIssues(plan)...)
	plan.Trust = (&trustPlanner{plan: plan, facts: facts, settings: t.settings, inv: t.inv, meshes: t.byRef}).trust(pins)
	plan.Issues = append(plan.Issues, mtlsIssues(plan)...)
	plan.Issues = append(plan.Issues, trustDomainIssues(plan)...)
	plan.Issues = append(plan.Issues, distinctIssues(plan)...)
	plan.Issues = append(plan.Issues, unpinnedIssues(plan)...)
	plan.Issues = append(plan.Issues, leftOutIssues(plan)...)
	compareRoots(plan)
	plan.Issues = append(plan.Issues, t.gatewaySelectorIssues(plan)...)
	return plan
}

// configureMember sets what a member gets from its VirtualMesh. Served are its gateways until now.
func (t *Topology) configureMember(plan *snapshot.VirtualMeshPlan, member *snapshot.MeshPlan, served servedGateways) {
	spec := &plan.VirtualMesh.Spec
	member.Limited = isLimited(plan.VirtualMesh) && canFederate(member)
	add := func(issues ...snapshot.Issue) {
		for _, issue := range issues {
			plan.Issues = append(plan.Issues, issue.On(plan.Ref, member.Ref))
		}
	}
	add(unsupportedIssues(spec, member)...)
	if ok, _ := member.Dialect.Supports(snapshot.VirtualMesh, "globalAccessPolicy"); ok &&
		member.AccessSetting == nil && spec.GlobalAccessPolicy == networkingv1.GlobalAccessPolicyEnabled {
		member.DenyByDefault = &snapshot.Origin{Ref: plan.Ref, Field: "globalAccessPolicy"}
	}
	add(closedAmbient(t, member)...)
	if !canFederate(member) {
		return
	}
	member.HostnameSuffix = snapshot.ServedSuffix
	if spec.Federation != nil && spec.Federation.HostnameSuffix != "" {
		member.HostnameSuffix = spec.Federation.HostnameSuffix
	}
	chooser := &gatewayChooser{t, gatewaySelectors(plan.VirtualMesh), member}
	if spec.Federation != nil && !isFlat(plan.VirtualMesh) && hasPeers(plan, member) {
		gateways, issues := t.findGateways(spec.Federation, member, served)
		member.Gateways = gateways
		add(issues...)
		add(t.limitGateways(member)...)
		if len(member.Gateways) == 0 {
			member.Served = served.applied
		}
		add(chooser.ignoredGateways()...)
	} else if member.DenyByDefault != nil {
		add((&gatewayChooser{Topology: t, mesh: member}).ignoredGateways()...)
	}
	add(chooser.mixedGateways()...)
	add(resolvingIssues(plan, member)...)
}

// canFederate reports whether services can be federated from and to a mesh.
func canFederate(m *snapshot.MeshPlan) bool {
	ok, _ := m.Dialect.Supports(snapshot.VirtualMesh, "federation")
	return ok
}

// hasPeers reports whether a VirtualMesh has other members that can call a mesh
// through gateways. Each kind of mesh has its own protocol between clusters.
func hasPeers(plan *snapshot.VirtualMeshPlan, mesh *snapshot.MeshPlan) bool {
	return slices.ContainsFunc(plan.Members, func(m *snapshot.MeshPlan) bool { return m != mesh && m.Dialect == mesh.Dialect })
}

// federates reports whether a VirtualMesh makes services visible in other meshes.
func federates(f *networkingv1.Federation) bool {
	return f != nil && (len(f.Selectors) > 0 || f.Permissive != nil || f.Mode == networkingv1.FederationModeDeclared)
}

// mtlsIssues report what is wrong with mtlsConfig, and with what agents are asked for.
func mtlsIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	mtls := plan.VirtualMesh.Spec.MtlsConfig
	switch {
	case mtls == nil:
		return nil
	case mtls.Issued() == nil:
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set mtlsConfig.shared: {}, or omit mtlsConfig",
			"mtlsConfig names no trust model, so certificates are not managed").At("mtlsConfig").On(plan.Ref, snapshot.Ref{})}
	}
	issues := slices.Concat(limitedIssues(plan), vaultIssues(plan), rootIssues(plan))
	for _, m := range plan.Trust.Members {
		if m.State == certificatesv1.IssuedCertificateFailed {
			issues = append(issues, snapshot.Errorf(snapshot.CertificateFailed, "the status of IssuedCertificate "+m.Ref.Namespace+"/"+m.Ref.Name+" in cluster "+m.Ref.Cluster+" says more",
				"the certificate of mesh %s: %s", m.Mesh.Name, cmp.Or(m.Error, "its agent gives no reason")).At("mtlsConfig").On(plan.Ref, m.Mesh))
		}
	}
	return issues
}
