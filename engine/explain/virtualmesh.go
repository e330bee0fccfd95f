package explain

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// VirtualMesh describes a VirtualMesh.
type VirtualMesh struct {
	Ref snapshot.Ref `json:"ref"`
	// State is that of its status.
	State commonv1.ApprovalState `json:"state"`
	InForce
	Members []Member `json:"members"`
	// GlobalAccess is MESH_DEFAULT, ENABLED, DISABLED, or AUDIT with what ENABLED would refuse in Audit.
	GlobalAccess networkingv1.GlobalAccessPolicy `json:"globalAccessPolicy"`
	Audit        *Audit                          `json:"audit,omitempty"`
	// Trust says in words who issues the members' certificates.
	Trust string `json:"trust"`
	// CommonTrust is where the common trust of the members stands; nil if they are given none, or that
	// is not known.
	CommonTrust *Trust `json:"commonTrust,omitempty"`
	// HostnameSuffix ends the names of federated services.
	HostnameSuffix string `json:"hostnameSuffix"`
	// Mode says which services members import; empty if the VirtualMesh has no federation.
	Mode networkingv1.FederationMode `json:"federationMode,omitempty"`
	// Modes compare what proxies hold with each mode; nil if that was not asked. See FederationSizes.
	Modes []ModeSize `json:"modes,omitempty"`
	// Federated are the services that members see of each other, ascending.
	Federated []Federated      `json:"federated"`
	Issues    []snapshot.Issue `json:"issues"`
}

// Member is a mesh that a VirtualMesh names.
type Member struct {
	Mesh snapshot.Ref `json:"mesh"`
	// State is ACCEPTED or INVALID.
	State   commonv1.ApprovalState `json:"state"`
	Cluster string                 `json:"cluster,omitempty"`
	// Frozen says why the member's cluster cannot be reached, so that nothing is changed there; empty if it can.
	Frozen string `json:"unreachable,omitempty"`
	// Roots are the SHA-256 fingerprints of the roots that it trusts; absent if they are
	// not known.
	Roots []string `json:"rootFingerprints,omitempty"`
	// Load is what federation adds to each proxy of the mesh; absent if nothing.
	Load     *Load    `json:"proxyLoad,omitempty"`
	Gateways []string `json:"gateways"`
	// OpenGateways let in all callers, whatever the global access policy is.
	OpenGateways []snapshot.Ref   `json:"openGateways,omitempty"`
	Issues       []snapshot.Issue `json:"issues,omitempty"`
}

// Load counts the services of other meshes in the configuration of a proxy.
type Load struct {
	ServiceEntries int `json:"serviceEntries"`
	Endpoints      int `json:"endpoints"`
}

// Federated is a service that several members see.
type Federated struct {
	Destination snapshot.Ref   `json:"destination"`
	Hostname    string         `json:"hostname"`
	Address     string         `json:"address"`
	To          []snapshot.Ref `json:"to"`
	// ImportedBy says because of what each of To imports it, where that has to be declared.
	ImportedBy []Import `json:"importedBy,omitempty"`
}

func (x describer) virtualMesh(v *snapshot.VirtualMeshPlan) *VirtualMesh {
	spec := &v.VirtualMesh.Spec
	out := &VirtualMesh{
		Ref: v.Ref, State: x.stateOf(v.Ref), InForce: x.inForceOf(v.Ref), Members: []Member{}, GlobalAccess: globalAccess(v.VirtualMesh), Audit: meshAudit(x.Index, v), Trust: trustText(spec.MtlsConfig),
		HostnameSuffix: networkingv1.DefaultHostnameSuffix, Federated: []Federated{}, Issues: x.issues.of(v.Ref),
	}
	if f := spec.Federation; f != nil && f.HostnameSuffix != "" {
		out.HostnameSuffix = f.HostnameSuffix
	}
	if spec.Federation != nil {
		out.Mode = modeOfFederation(v)
	}
	if x.trustStatus(v).Stage != "" {
		out.CommonTrust = x.trust(v)
	}
	for _, ref := range spec.Meshes {
		out.Members = append(out.Members, x.member(v, snapshot.Ref{Kind: snapshot.Mesh, Namespace: ref.Namespace, Name: ref.Name}))
	}
	for d := range x.state.Plan.Destinations.All() {
		if d.Federation == nil || d.Federation.Origin.Ref != v.Ref {
			continue
		}
		federated := Federated{Destination: d.Ref, Hostname: d.Federation.Hostname, Address: d.Federation.Address, ImportedBy: importsOf(d.Federation)}
		for _, m := range d.Federation.To {
			federated.To = append(federated.To, m.Ref)
		}
		out.Federated = append(out.Federated, federated)
	}
	return out
}

// member describes a mesh that the VirtualMesh names.
func (x describer) member(v *snapshot.VirtualMeshPlan, ref snapshot.Ref) Member {
	out := Member{Mesh: ref, State: commonv1.ApprovalStateInvalid, Gateways: []string{}}
	for _, issue := range v.Issues {
		if issue.Target == ref {
			out.Issues = append(out.Issues, issue)
		}
	}
	if issue, found := v.RootIssue(); found && slices.Contains(v.Divided, ref) {
		out.Issues = append(out.Issues, issue)
	}
	i := slices.IndexFunc(v.Members, func(m *snapshot.MeshPlan) bool { return m.Ref == ref })
	if i < 0 {
		return out
	}
	mesh := v.Members[i]
	out.Cluster, out.Frozen, out.Gateways, out.Roots = mesh.Cluster, x.frozenReason(mesh.Cluster), gatewayAddresses(mesh), mesh.Roots
	if !snapshot.Rejected(out.Issues) {
		out.State = commonv1.ApprovalStateAccepted
	}
	for _, gw := range mesh.OpenGateways {
		out.OpenGateways = append(out.OpenGateways, gw.Service)
	}
	for _, l := range v.Loads {
		if l.Mesh == ref {
			out.Load = &Load{l.ServiceEntries, l.Endpoints}
		}
	}
	return out
}

func trustText(m *networkingv1.MTLSConfig) string {
	switch {
	case m == nil:
		return "each mesh keeps its own certificates"
	case m.Limited != nil:
		return "limited: each mesh keeps its root, and only gateways trust each other"
	case m.Shared == nil:
		return "not configured"
	}
	switch root := m.Shared.RootCertificateAuthority; {
	case m.Shared.IntermediateCertificateAuthority != nil:
		return "shared, signed by a Vault"
	case root != nil && root.Secret != nil:
		return "shared, root in the Secret " + root.Secret.Namespace + "/" + root.Secret.Name
	}
	return "shared, root created by meshctl"
}

// shortRoots returns a function that writes the roots of a member for a table.
func (v *VirtualMesh) shortRoots() func(roots []string) string {
	var all []string
	for _, m := range v.Members {
		all = append(all, m.Roots...)
	}
	short := snapshot.ShortFingerprints(all)
	return func(roots []string) string {
		out := make([]string, len(roots))
		for i, root := range roots {
			out[i] = short(root)
		}
		return strings.Join(out, ", ")
	}
}

// String is for tables.
func (l *Load) String() string {
	if l == nil {
		return ""
	}
	return snapshot.Count(l.ServiceEntries, "service") + ", " + snapshot.Count(l.Endpoints, "endpoint")
}

// importsText says what members import, if that has to be declared.
func (v *VirtualMesh) importsText() string {
	if v.Mode != networkingv1.FederationModeDeclared {
		return ""
	}
	return "what ServiceDependencies and policies of each mesh name (mode DECLARED)"
}

// Page implements Description.
func (v *VirtualMesh) Page() Page {
	members := Section{Title: "Members", Header: []string{"MESH", "STATE", "CLUSTER", "GATEWAYS", "TRUSTED ROOTS", "ADDED TO EACH PROXY", "UNREACHABLE"}}
	short := v.shortRoots()
	for _, m := range v.Members {
		members.Rows = append(members.Rows, []string{
			shortName(m.Mesh), string(m.State), m.Cluster, strings.Join(m.Gateways, ", "), short(m.Roots), m.Load.String(), m.Frozen,
		})
		members.Refs = append(members.Refs, m.Mesh)
	}
	if len(members.Rows) == 0 {
		members = Section{Title: "Members", Text: "None."}
	}
	var open Section
	for _, m := range v.Members {
		for _, gw := range m.OpenGateways {
			open.Title, open.Header = "Gateways that let in all callers", []string{"SERVICE", "MESH"}
			open.Rows = append(open.Rows, []string{gw.Namespace + "/" + gw.Name, shortName(m.Mesh)})
		}
	}
	federated := Section{Title: "Federated services", Header: []string{"HOST", "ADDRESS", "DESTINATION", "SEEN BY"}}
	for _, f := range v.Federated {
		to := make([]string, len(f.To))
		for i, ref := range f.To {
			to[i] = ref.Name
		}
		federated.Rows = append(federated.Rows, []string{f.Hostname, f.Address, f.Destination.Name, strings.Join(to, ", ")})
		federated.Refs = append(federated.Refs, f.Destination)
	}
	if len(federated.Rows) == 0 {
		federated = Section{Title: "Federated services", Text: "None."}
	}
	sections := []Section{
		facts("",
			[2]string{"State", string(v.State)}, [2]string{"Global access", string(v.GlobalAccess)},
			[2]string{"Trust", v.Trust}, [2]string{"Host suffix", v.HostnameSuffix},
			[2]string{"Imports", v.importsText()},
		),
		members,
	}
	sections = append(sections, v.Audit.sections()...)
	if v.CommonTrust != nil {
		sections = append(sections, v.CommonTrust.inDescription()...)
	}
	if len(v.Modes) > 0 {
		sections = append(sections, modesSection(v.Modes))
	}
	if len(open.Rows) > 0 {
		sections = append(sections, open)
	}
	return v.InForce.on(Page{Title: "VirtualMesh " + shortName(v.Ref), Sections: append(sections, federated), Issues: v.Issues})
}
