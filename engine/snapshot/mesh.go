package snapshot

import (
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// VirtualMeshPlan is one VirtualMesh with its members.
type VirtualMeshPlan struct {
	Ref         Ref
	VirtualMesh *networkingv1.VirtualMesh
	// NotCounted: it has no effect, because VirtualMeshes in its namespace do not count.
	NotCounted bool
	// Members are its meshes, ascending by Ref.
	Members []*MeshPlan
	// Loads are what federation adds to the proxies of each member that sees
	// services of others, the largest first.
	Loads []ProxyLoad
	// Divided are the members that share no root with another one, ascending; the
	// issue with code RootsDiffer is about them.
	Divided []Ref
	// Trust is the common trust that the VirtualMesh gives its members; nil if it gives none.
	Trust *TrustPlan
	// Issues are about all of it, or about the Mesh in their Target.
	Issues []Issue
}

// RootIssue is the issue about members that share no root; false if there is none.
func (v *VirtualMeshPlan) RootIssue() (Issue, bool) {
	for _, issue := range v.Issues {
		if issue.Code == RootsDiffer {
			return issue, true
		}
	}
	return Issue{}, false
}

// ProxyLoad is what federation adds to the configuration of each proxy of a mesh.
type ProxyLoad struct {
	Mesh Ref
	// ServiceEntries are services of other meshes, and Endpoints their endpoints:
	// the addresses of gateways for each set of labels, or pods in a flat network.
	ServiceEntries, Endpoints int
}

// MeshPlan is one control plane, and its place in a VirtualMesh.
type MeshPlan struct {
	Ref  Ref
	Mesh *discoveryv1.Mesh
	// Dialect is never nil.
	Dialect *Dialect
	Cluster string
	// Namespace is where the mesh keeps its mesh-wide configuration (the
	// control plane's own).
	Namespace string
	// RootNamespace is where Istio looks for configuration of the whole mesh: in
	// any other namespace it applies to that namespace only. SharesRootNamespace is
	// set if a mesh before this one has the same.
	RootNamespace       string
	SharesRootNamespace bool
	// SharesNamespace is set if a mesh before this one has the same Namespace:
	// they are revisions of one control plane, and read each other's configuration.
	SharesNamespace bool
	// ExportTo are the namespaces to which objects are exported that do not say it; nil
	// for all.
	ExportTo *discoveryv1.IstioExportTo
	// PathNormalization is what proxies do to the path of a request before they compare
	// it, as Istio's MeshConfig names it; empty if it is not known.
	PathNormalization string
	// Unknowns is what proxies do with requests for hosts that they do not know.
	Unknowns Unknowns
	// IgnoresOwn are those namespaces of Namespace and RootNamespace of which the control plane reads nothing, so that what is
	// written there has no effect.
	IgnoresOwn []string
	// DefaultSettings are what the mesh sets for all services that nothing else sets it for, as its settings name it.
	DefaultSettings []string
	// EndpointNotes say in sentences by which settings proxies get other endpoints than all that a service has.
	EndpointNotes []string
	// PlainBy says because of what callers present no identity unless something says that they do; empty if they do.
	PlainBy string
	// MayKnowOthers says because of what the control plane may know pods of other clusters by itself; empty if nothing shows that.
	MayKnowOthers string
	// ClusterID says because of what the control plane may know pods of services that other clusters have by the same name; empty if
	// nothing shows that.
	ClusterID string
	// Undetected says because of what proxies of pods do not detect requests in what callers of the mesh send; empty if they do.
	Undetected string
	// LocalHosts are hosts of which the mesh calls endpoints in the caller's own cluster only, SharedHosts those of which its settings
	// say otherwise; see KeepsInCluster.
	LocalHosts, SharedHosts []string
	// InboundNote says to what of the applications proxies pass on what they get, if that is not what callers connect to; else empty.
	InboundNote string
	// ForeignCA says because of what somebody else than the control plane signs the certificates of proxies; empty if it does.
	ForeignCA string
	// TrustDomain is never empty: Istio's default is cluster.local.
	TrustDomain string
	// TrustDomainSet: the mesh's settings name TrustDomain, rather than that it is assumed.
	TrustDomainSet bool
	// TrustAliases are trust domains that the mesh treats as its own, and TrustPeers
	// others whose callers it accepts.
	TrustAliases, TrustPeers []string
	// Roots are the SHA-256 fingerprints of the root certificates that its proxies
	// trust, ascending; nil if they are not known.
	Roots []string
	// DNS is how callers find the addresses of hosts.
	DNS MeshDNS
	// VirtualMesh is the one that the mesh is a member of; nil if none.
	VirtualMesh *networkingv1.VirtualMesh
	// HostnameSuffix ends the host names of services federated by the VirtualMesh.
	HostnameSuffix string
	// Gateways are where other meshes of the VirtualMesh connect.
	Gateways []GatewayPlan
	// Served are the gateways through which they connected until there were none any more, as the status of the Mesh has them; nil
	// while there are Gateways.
	Served []discoveryv1.AppliedEastWestIngressGateway
	// Limited: the trust of the VirtualMesh is that of gateways. Callers of the mesh reach
	// other members through its own gateways, too.
	Limited bool
	// OpenGateways stay reachable where access is denied by default.
	OpenGateways []OpenGateway
	// DenyByDefault is set where only what an AccessPolicy names is allowed.
	DenyByDefault *Origin
	// AccessSetting is the mesh's own setting for access, which overrides that of a
	// VirtualMesh; nil if it has none.
	AccessSetting *Origin
	// Open is set where the mesh allows all calls, whatever AccessPolicies say.
	Open bool
	// Trust is what is asked of the agent of the mesh; nil if nothing is.
	Trust *MemberTrust
}

// Unknowns is what proxies do with requests for hosts that they do not know.
type Unknowns string

const (
	// UnknownsPassed: they send them on as they are.
	UnknownsPassed Unknowns = ""
	// UnknownsRefused: they refuse them.
	UnknownsRefused Unknowns = "refused"
	// UnknownsElsewhere: they send them to where something else says.
	UnknownsElsewhere Unknowns = "elsewhere"
)

// GatewayPlan is an east-west gateway: the service by which other clusters reach
// the mesh.
type GatewayPlan struct {
	// Destination is the gateway's own.
	Destination Ref
	// Service names it in its cluster.
	Service Ref
	// Selector are the labels of its pods.
	Selector map[string]string
	// Addresses are IPs or host names reachable from other clusters.
	Addresses []string
	// Port is the one to connect to at Addresses.
	Port uint32
	// ContainerPort is the one on which its pods listen.
	ContainerPort uint32
	// Shared gateways belong to another revision of the control plane.
	Shared bool
	// NoPods: it is known that none of its pods is ready, nor any of another gateway of the mesh. It keeps its place.
	NoPods bool
	// Pods are the addresses of its pods, and Identities what they present to their own
	// mesh, as SPIFFE IDs, ascending; only if the mesh is Limited.
	Pods, Identities []string
}

// OpenGateway is a gateway that a global access policy must not close.
type OpenGateway struct {
	Service  Ref
	Selector map[string]string
	// Address names it in generated objects.
	Address string
}

// IsOpenGateway reports whether a service is a gateway that stays reachable where access
// is denied by default.
func (m *MeshPlan) IsOpenGateway(service Ref) bool {
	return slices.ContainsFunc(m.OpenGateways, func(g OpenGateway) bool { return g.Service == service })
}

// DefaultTrustDomain is the trust domain of an Istio mesh that does not set one.
// In Istio's configuration it also stands for the trust domain of the mesh itself,
// whatever that is.
const DefaultTrustDomain = "cluster.local"

// Accepts reports whether proxies of the mesh accept connections from callers of
// a trust domain.
func (m *MeshPlan) Accepts(trustDomain string) bool {
	return m.isOwnTrustDomain(trustDomain) || slices.Contains(m.TrustPeers, trustDomain) || slices.Contains(m.TrustPeers, discoveryv1.AnyTrustDomain)
}

// MayShareRoot reports whether proxies of two meshes trust a common root, or may do
// so because it is not known which ones they trust. It does not say that
// certificates are signed by that root: only bundles are visible.
func (m *MeshPlan) MayShareRoot(o *MeshPlan) bool {
	return len(m.Roots) == 0 || len(o.Roots) == 0 ||
		slices.ContainsFunc(m.Roots, func(root string) bool { return slices.Contains(o.Roots, root) })
}

// SameTrustDomain reports whether the mesh treats identities of two trust domains as
// the same (istio.io: trust domain migration).
func (m *MeshPlan) SameTrustDomain(a, b string) bool {
	return a == b || m.isOwnTrustDomain(a) && m.isOwnTrustDomain(b)
}

// OwnTrustDomains are those in which the control plane issues certificates, now or before,
// ascending; nil if its settings do not name any.
func (m *MeshPlan) OwnTrustDomains() []string {
	if !m.TrustDomainSet {
		return nil
	}
	out := append([]string{m.TrustDomain}, m.TrustAliases...)
	slices.Sort(out)
	return slices.Compact(out)
}

// CommonTrustDomains are those that two meshes both treat as their own, ascending: policies
// cannot tell apart who presents one of them.
func (m *MeshPlan) CommonTrustDomains(o *MeshPlan) []string {
	own := append([]string{m.TrustDomain}, m.TrustAliases...)
	own = slices.DeleteFunc(own, func(domain string) bool { return !o.isOwnTrustDomain(domain) })
	slices.Sort(own)
	return slices.Compact(own)
}

func (m *MeshPlan) isOwnTrustDomain(trustDomain string) bool {
	return trustDomain == m.TrustDomain || slices.Contains(m.TrustAliases, trustDomain)
}

// MeshType is the kind of a mesh, such as "istio", and where its control plane is
// installed; "unknown" for a spec of no kind.
func MeshType(spec *discoveryv1.MeshSpec) (string, discoveryv1.MeshInstallation) {
	switch {
	case spec.Istio != nil:
		return "istio", spec.Istio.Installation
	case spec.Osm != nil:
		return "osm", spec.Osm.Installation
	case spec.Linkerd != nil:
		return "linkerd", spec.Linkerd.Installation
	case spec.ConsulConnect != nil:
		return "consulconnect", spec.ConsulConnect.Installation
	case spec.AwsAppMesh != nil:
		return "appmesh", discoveryv1.MeshInstallation{Region: spec.AwsAppMesh.Region}
	default:
		return "unknown", discoveryv1.MeshInstallation{}
	}
}

// ServedSuffix is the last label of host names for which a DNS server is expected to answer where proxies do not, as in Gloo Mesh 1.x.
const ServedSuffix = "global"

// Resolving is how callers find the address of a host.
type Resolving uint8

const (
	// ResolvedByProxies: their proxies answer.
	ResolvedByProxies Resolving = iota
	// ResolvedByServer: a DNS server of their cluster may answer; it is not looked at.
	ResolvedByServer
	// NotResolved: nobody answers.
	NotResolved
)

// MeshDNS is how callers in a mesh find the addresses of hosts.
type MeshDNS struct {
	// ResolvesAll: callers can resolve every host name that the mesh knows.
	ResolvesAll bool
	// AsksServers: some workloads have DNS servers resolve host names where ResolvesAll is not set.
	AsksServers bool
	// ServerAssumed: the issues of the VirtualMesh of the mesh say that a server has to answer for its HostnameSuffix.
	ServerAssumed bool
}

// Resolves says how callers resolve a host that is made for the mesh, or hosts with that suffix.
func (d MeshDNS) Resolves(host string) Resolving {
	labels := strings.Split(host, ".")
	switch {
	case d.ResolvesAll:
		return ResolvedByProxies
	case labels[len(labels)-1] == ServedSuffix:
		return ResolvedByServer
	}
	return NotResolved
}
