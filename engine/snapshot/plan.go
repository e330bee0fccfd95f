package snapshot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// State is one translation with all that led to it: what questions are asked of.
type State struct {
	Input *Input
	// Discovered is ascending by cluster.
	Discovered []*Discovered
	Plan       *Plan
	Output     *Output
}

// Plan is the desired state, independent of any mesh. Renderers turn it into
// objects; explain answers from it. Every value that a user asked for carries
// the Origin that asked.
type Plan struct {
	// Meshes are ascending by Ref.
	Meshes []*MeshPlan
	// Destinations are ascending by Ref.
	Destinations List[*DestinationPlan]
	// Workloads are ascending by name.
	Workloads []*discoveryv1.Workload
	// VirtualMeshes are ascending by Ref.
	VirtualMeshes []*VirtualMeshPlan
	// VirtualDestinations are ascending by Ref.
	VirtualDestinations []*VirtualDestinationPlan
	// Policies are the verdicts on TrafficPolicies and AccessPolicies,
	// ascending by Ref.
	Policies []*PolicyPlan
	// Dependencies are the verdicts on ServiceDependencies, ascending by Ref, and
	// Sidecars what follows from them, ascending by Ref.
	Dependencies []*DependencyPlan
	Sidecars     []*SidecarPlan
	// Externals are the services outside all clusters that routes go to, ascending by Ref.
	Externals []*ExternalPlan
	// Filters are the meshes with routes that need filters which proxies do not
	// have by themselves, ascending by mesh.
	Filters []*FilterPlan
}

// ExternalPlan is a service outside all clusters and who needs to know of it.
type ExternalPlan struct {
	Ref         Ref
	Destination *discoveryv1.Destination
	// Meshes are those with routes to it, ascending by Ref.
	Meshes []*MeshPlan
	// Policies are the first that send requests to it, ascending.
	Policies []Ref
}

// FilterPlan says which filters the callers' proxies of a mesh must have. They
// do nothing but on the routes that switch them on.
type FilterPlan struct {
	Mesh            *MeshPlan
	CSRF, RateLimit bool
	// Policies are the first that switch them on, ascending.
	Policies []Ref
}

// VirtualMeshPlan is one VirtualMesh and what became of it.
type VirtualMeshPlan struct {
	Ref         Ref
	VirtualMesh *networkingv1.VirtualMesh
	// Members are the meshes it holds, ascending by Ref.
	Members []*MeshPlan
	// Loads say what federation adds to the proxies of each member that sees
	// services of others, the largest first.
	Loads []ProxyLoad
	// Issues concern all of it, or the Mesh in their Target.
	Issues []Issue
}

// ProxyLoad is what federation adds to the configuration of each proxy of a mesh.
type ProxyLoad struct {
	Mesh Ref
	// ServiceEntries are services of other meshes, and Endpoints all of theirs:
	// addresses of gateways for each set of labels, or pods where the network is flat.
	ServiceEntries, Endpoints int
}

// Origin says from which field of which object a value follows.
type Origin struct {
	Ref Ref
	// Field is the path below spec, such as "policy.requestTimeout".
	Field string
}

// Owned is a value with the origin that asked for it.
type Owned[T any] struct {
	Value  T
	Origin Origin
}

// MeshPlan is one control plane and its part in a VirtualMesh.
type MeshPlan struct {
	Ref  Ref
	Mesh *discoveryv1.Mesh
	// Dialect is never nil.
	Dialect *Dialect
	Cluster string
	// Namespace is where the mesh keeps its mesh-wide configuration (the
	// control plane's own).
	Namespace string
	// RootNamespace is where what holds for all of the mesh must stand: elsewhere
	// Istio takes it for the configuration of that namespace. RootTwin is set if
	// a mesh before this one has the same.
	RootNamespace string
	RootTwin      bool
	// Twin is set if a mesh before this one keeps its configuration in the same
	// place: they are revisions of one control plane, and read each other's.
	Twin bool
	// TrustDomain is never empty: Istio's default is cluster.local.
	TrustDomain string
	// TrustAliases are trust domains that are the same to the mesh as its own, and
	// TrustPeers others whose callers it accepts.
	TrustAliases, TrustPeers []string
	// ResolvesAll: callers can resolve any host name that the mesh knows.
	ResolvesAll bool
	// VirtualMesh is the one that holds the mesh; nil if none does.
	VirtualMesh *networkingv1.VirtualMesh
	// HostnameSuffix ends the host names of services federated by the VirtualMesh.
	HostnameSuffix string
	// Gateways let the other meshes of the VirtualMesh in.
	Gateways []GatewayPlan
	// OpenGateways are to stay reachable where access is denied by default.
	OpenGateways []OpenGateway
	// DenyByDefault is set where only what an AccessPolicy names is allowed.
	DenyByDefault *Origin
	// AccessSetting is the mesh's own setting for access, which holds whatever a
	// VirtualMesh says; nil if it has none.
	AccessSetting *Origin
	// Open is set where the mesh lets everybody call everybody, whatever
	// AccessPolicies say.
	Open bool
}

// GatewayPlan is an east-west gateway: a service through which other clusters
// reach the mesh.
type GatewayPlan struct {
	// Destination is the gateway's own.
	Destination Ref
	// Service names it in its cluster.
	Service Ref
	// Selector are the labels of its pods.
	Selector map[string]string
	// Addresses are IPs or host names reachable from other clusters.
	Addresses []string
	// Port is the one to dial at Addresses.
	Port uint32
	// ContainerPort is where the pods listen.
	ContainerPort uint32
	// Shared gateways are those of another revision of the control plane.
	Shared bool
}

// OpenGateway is a gateway that a global access policy must not close.
type OpenGateway struct {
	Service  Ref
	Selector map[string]string
	// Address names it in generated objects.
	Address string
}

// DestinationPlan is one service: how it is reached from each mesh, and who may.
type DestinationPlan struct {
	Ref         Ref
	Destination *discoveryv1.Destination
	Mesh        *MeshPlan
	// LocalFQDN is the service's name in its own cluster.
	LocalFQDN string
	// Federation is nil if no other mesh sees the service.
	Federation *Federation
	// Views tell how the service is seen from its own mesh (always first) and
	// from each mesh that it is federated to and that sees something special.
	Views []*View
	// Traffic are the TrafficPolicies in force here, in order of precedence.
	Traffic []AppliedTraffic
	// Access are the AccessPolicies in force here, ascending by Ref.
	Access []*AccessRule
	// RequiredSubsets are the policies in force anywhere that shift traffic to
	// subsets of the service, ascending by Ref.
	RequiredSubsets []AppliedTraffic
	// Grants are what Access comes to where the mesh knows service accounts only.
	Grants []*Grant
}

// Account is a service account in the cluster at hand.
type Account struct {
	Namespace string
	Name      string
}

// Compare orders by namespace and name.
func (a Account) Compare(b Account) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Grant lets accounts call the pods of an account.
type Grant struct {
	// Rule has the paths and methods that are granted.
	Rule *AccessRule
	To   Account
	// From is ascending and never empty: meshes read none as everybody.
	From []Account
	// Ports are those on which the pods listen, ascending; nil for all.
	Ports []uint32
}

// AppliedTraffic is a TrafficPolicy in force on a Destination.
type AppliedTraffic struct {
	Policy *networkingv1.TrafficPolicy
	// Spec is the policy's own, or the last accepted one where the present is invalid.
	Spec *networkingv1.TrafficPolicySpec
	// LastGood is true if Spec is not the policy's present one.
	LastGood bool
	// Generation is the policy's with Spec.
	Generation int64
}

// Federation says under which name other meshes see a service.
type Federation struct {
	// Hostname is <service>.<namespace>.svc.<cluster>.<suffix>.
	Hostname string
	// Address is the virtual IP of Hostname, the same in every mesh.
	Address string
	// To are the meshes, ascending by Ref.
	To []*MeshPlan
	// Flat: pods are reached without gateways.
	Flat bool
	// KeepAlive keeps connections between clusters from being dropped; nil for the mesh's own.
	KeepAlive *Owned[KeepAlive]
	// Origin is the VirtualMesh's federation.
	Origin Origin
}

// KeepAlive are TCP keep-alive probes.
type KeepAlive struct {
	// Probes go unanswered at most.
	Probes uint32
	// Time is the idle time before the first probe, Interval between probes.
	Time, Interval time.Duration
}

// View is a Destination as seen from one mesh.
type View struct {
	Mesh *MeshPlan
	// Host is the name under which the mesh calls the service.
	Host string
	// Routes are in the order of matching; the last one matches everything.
	// None means that requests go to the service unchanged.
	Routes []*Route
	// Subsets that routes anywhere refer to, ascending by name.
	Subsets []Subset
	Outlier *Owned[networkingv1.OutlierDetection]
	TLS     *Owned[networkingv1.TLSMode]
	// KeepAlive is set on views from other clusters only.
	KeepAlive *Owned[KeepAlive]
}

// Subset is a named part of a service's endpoints.
type Subset struct {
	Name   string
	Labels map[string]string
}

// Route is what happens to requests that match.
type Route struct {
	Match Match
	// Key is that of no other route of the Destination, and always the same for
	// the same Match; empty for the catch-all that no policy asked for.
	Key    string
	Action *Action
}

// Match says which requests a Route takes. The zero Match takes all.
type Match struct {
	// SourceNamespace and SourceLabels are the caller's; empty means any.
	SourceNamespace string
	SourceLabels    map[string]string
	// Request is nil for any request.
	Request *networkingv1.HttpMatcher
}

// Action is what is done with a request, field by field, by all policies that
// are about the same requests.
type Action struct {
	// Policies set its fields, in order of precedence; none in the catch-all that
	// leaves other requests unchanged.
	Policies []Ref
	// Targets is nil to leave the destination as it is.
	Targets *Owned[[]Target]
	Timeout *Owned[time.Duration]
	Retries *Owned[networkingv1.RetryPolicy]
	Delay   *Owned[Delay]
	Abort   *Owned[Abort]
	CORS    *Owned[networkingv1.CorsPolicy]
	Mirror  *Owned[MirrorTarget]
	Headers *Owned[networkingv1.HeaderManipulation]
	CSRF    *Owned[CSRF]
	// RateLimit counts the requests of each caller's proxy by itself.
	RateLimit *Owned[RateLimit]
}

// CSRF compares the origin of requests that change something with their host.
type CSRF struct {
	// Shadow only counts the requests that fail; else they are refused.
	Shadow bool
	// Percent of the requests that are looked at, 0 to 100.
	Percent float64
	// Origins are hosts, with ports if any, that are taken besides the request's own.
	Origins []commonv1.StringMatch
}

// RateLimit lets a number of requests through in each stretch of time.
type RateLimit struct {
	// Requests is never 0.
	Requests uint32
	Per      time.Duration
}

// Target is one of the places a Route sends requests to.
type Target struct {
	Destination Ref
	// Host is the target's name in the mesh of the View.
	Host string
	// Port is never 0.
	Port uint32
	// Subset is empty for all endpoints.
	Subset string
	Weight uint32
	// External targets are outside all clusters.
	External bool
	// Headers are changed for this target only; nil for none.
	Headers *networkingv1.HeaderManipulation
}

// Delay holds requests back.
type Delay struct {
	Duration time.Duration
	// Percent of the requests, 0 to 100.
	Percent float64
}

// Abort answers requests in the service's place.
type Abort struct {
	// Status is the HTTP status of the answer.
	Status int32
	// Percent of the requests, 0 to 100.
	Percent float64
}

// MirrorTarget receives copies of requests.
type MirrorTarget struct {
	Destination Ref
	Host        string
	Port        uint32
	// Percent of the requests, 0 to 100.
	Percent float64
}

// AccessRule is one AccessPolicy on one Destination.
type AccessRule struct {
	Origin Origin
	// Policy is the *AccessPolicy.
	Policy metav1.Object
	// Anyone may call if true; else only Sources. (An empty list of Sources
	// that came out empty must not read as everybody.)
	Anyone  bool
	Sources []Source
	Paths   []string
	Methods []string
	Ports   []uint32
}

// Source is a set of callers: identities, or whole namespaces of any trust
// domain. If both are given, callers must be among both.
type Source struct {
	Identities []Identity
	Namespaces []string
}

// Identity is a caller as its certificate names it. Empty Namespace or
// ServiceAccount means any; ServiceAccount is empty if Namespace is.
type Identity struct {
	Cluster        string
	TrustDomain    string
	Namespace      string
	ServiceAccount string
}

// DefaultTrustDomain is what Istio calls a mesh without a trust domain of its
// own, and at the same time its word for "this mesh's trust domain", whatever
// that is.
const DefaultTrustDomain = "cluster.local"

// Accepts reports whether proxies of the mesh accept connections of callers of
// a trust domain at all.
func (m *MeshPlan) Accepts(trustDomain string) bool {
	return m.own(trustDomain) || slices.Contains(m.TrustPeers, trustDomain) || slices.Contains(m.TrustPeers, discoveryv1.AnyTrustDomain)
}

// Alike reports whether the mesh takes identities of two trust domains for the
// same (istio.io: trust domain migration).
func (m *MeshPlan) Alike(a, b string) bool { return a == b || m.own(a) && m.own(b) }

func (m *MeshPlan) own(trustDomain string) bool {
	return trustDomain == m.TrustDomain || slices.Contains(m.TrustAliases, trustDomain)
}

// NoTrustDomain is that of callers whose certificates bear no SPIFFE identity,
// such as those of Open Service Mesh. Their own mesh knows them by service account.
const NoTrustDomain = ""

// Nameable reports whether a mesh with the given trust domain can be told about
// the identity. One of DefaultTrustDomain would be taken for its own callers
// where the mesh has another one.
func (id Identity) Nameable(trustDomain string) bool {
	return id.TrustDomain != NoTrustDomain && (id.TrustDomain != DefaultTrustDomain || trustDomain == DefaultTrustDomain)
}

// PolicyPlan is the verdict on one policy.
type PolicyPlan struct {
	Ref Ref
	// Verdicts are per selected Destination, ascending by Ref, and Remarks
	// says how many issues there are in them.
	Verdicts []Verdict
	Remarks  int
	// Workloads are the first of the selected sources, ascending by Ref, and
	// WorkloadCount says how many there are.
	Workloads     []Ref
	WorkloadCount int
	// Issues on the policy as a whole.
	Issues []Issue
	// Policy is the *TrafficPolicy or *AccessPolicy judged.
	Policy metav1.Object
	// LastEnforced is the generation of the policy's spec that was last in force
	// on any Destination: the present one if it is; 0 if none ever was.
	LastEnforced int64
}

// Verdict is what became of a policy on one Destination.
type Verdict struct {
	Destination Ref
	// Accepted policies have an Order: 0 has precedence over 1.
	Accepted bool
	Order    uint32
	// Issues say why not, or what else there is to know.
	Issues []Issue
}
