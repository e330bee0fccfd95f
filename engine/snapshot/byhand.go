package snapshot

import (
	"net/netip"
	"time"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// ByHand is what users wrote for a mesh themselves in one cluster, beside what is generated. The inspector of the kind of mesh
// makes it (Dialect.Inspect), and knows what its objects decide. All lists are ascending by Ref.
type ByHand interface {
	// Holds reports whether it is also what there is in a cluster.
	Holds(c *Cluster) bool
	// Empty reports whether there is nothing.
	Empty() bool
	// Routes are the objects that also route requests for a host.
	Routes(of *HostQuery) []Intersection
	// Connections are those that also say how a host is connected to.
	Connections(of *HostQuery) []Intersection
	// Endpoints are those that also say where a host is.
	Endpoints(of *HostQuery) []Intersection
	// Takers are those that take connections to the addresses and the port of a host, whatever host they are for themselves, and that
	// the callers know. Without callers, those that any know.
	Takers(of *HostQuery, callers *PodQuery) []Intersection
	// Access are those that also say who may call the pods of a service of a mesh.
	Access(service *discoveryv1.KubeService, mesh *MeshPlan) []Intersection
	// Tries reports whether the pods of a service of a mesh also try what users wrote, and count it beside a TrialPlan.
	Tries(service *discoveryv1.KubeService, mesh *MeshPlan) bool
	// Egress are those that also say what workloads of a namespace may call, of which the query has the labels of the pods of each.
	Egress(of *PodQuery) []Intersection
	// Hides is an object because of which the proxies of callers do not know a host; false if there is none.
	Hides(of *HostQuery, callers *PodQuery) (Intersection, bool)
	// Unknowns is what the proxies of callers do with requests for hosts that they do not know, and the object that says so; false if
	// none does.
	Unknowns(callers *PodQuery) (Unknowns, Ref, bool)
	// HidesAll are the objects because of which some proxies of a mesh know none of the generated names that end with a suffix.
	HidesAll(suffix string, mesh *MeshPlan) []Intersection
	// RoutesFor are those objects of Routes that callers see, with what they do, the one that proxies use first. Without pods, the callers
	// are those of a namespace that import all there is.
	RoutesFor(of *HostQuery, callers *PodQuery) []HandRoutes
	// ConnectionFor is how an object of Connections says that callers connect to a port of a host, or of a subset of it: the one that
	// their proxies use first; false if none says anything. Subset is empty for all pods.
	ConnectionFor(of *HostQuery, callers *PodQuery, subset string) (HandConnection, bool)
	// AtGateway are the ways into the mesh through gateways. Leads says which of them lead to a host. Unknown says what else may lead
	// there, and is not followed; empty if nothing may.
	AtGateway(gateway *PodQuery, to *HostQuery) (entries []GatewayEntry, unknown string)
	// SubsetLabels are the labels of the pods of a subset of a host that the one of Connections defines which callers use; false if it
	// does not.
	SubsetLabels(of *HostQuery, callers *PodQuery, subset string) (map[string]string, bool)
	// Filters are the objects that change what the proxies of pods do with requests, and are not evaluated.
	Filters(pods *PodQuery, at ProxySide) []Intersection
	// HasFilters reports whether there may be any of these.
	HasFilters() bool
	// InAmbient are those that mean something else for the pods of a service in ambient mode than they say.
	InAmbient(of *HostQuery, service *discoveryv1.KubeService) []Intersection
	// Guards are what decides about calls to pods beside AccessPolicies, one for each group of pods about which the same objects
	// decide; none if nothing does.
	Guards(of *PodQuery) []Guard
}

// HandRoutes is how an object that a user wrote routes the requests for a host.
type HandRoutes struct {
	Ref Ref
	// As is the object as which the mesh compares it with others of the same age. It differs from Ref where the mesh makes one of it.
	As Ref
	// Precedence is its place before its age is looked at. Of it and a generated object with the same one, the older is used.
	Precedence Precedence
	// Pattern: it is for several hosts, and used only if nothing is for this one.
	Pattern bool
	Created time.Time
	// Routes are tried in this order. If one of them is for the callers, what none of them takes is answered with status 404; else
	// the object is none for them.
	Routes []HandRoute
}

// Precedence is the place of an object with routes among those for a host, whatever their age: the one with the least is used.
type Precedence int

const (
	// AttachedToOwn: it is attached to a service, in the namespace of the callers, and for these alone.
	AttachedToOwn Precedence = iota
	// OwnOnly: it is in the namespace of the callers, and for these alone.
	OwnOnly
	// ForSome: it is for some namespaces, that of the callers among them.
	ForSome
	// AttachedForAll: it is attached to a service, in the namespace of the callers, and for all.
	AttachedForAll
	// ForAll: it is for all.
	ForAll
)

// HandRoute is one route. Its targets have hosts as the mesh knows them, and no Destinations.
type HandRoute struct {
	Match  Match
	Action *Action
	// MatchUnknown and ActionUnknown say what of them is not evaluated; empty if all is.
	MatchUnknown, ActionUnknown string
	// Ends says what it does with requests if none of them reaches a service; else empty.
	Ends string
}

// Traffic is what the proxies of callers see on a port.
type Traffic string

const (
	// Requests are of HTTP or gRPC.
	Requests Traffic = ""
	// Connections are seen as a whole.
	Connections Traffic = "connections"
	// TLSConnections are as Connections; callers say in them which name they ask for.
	TLSConnections Traffic = "TLS connections"
)

// HandConnection is how callers connect because of an object that a user wrote.
type HandConnection struct {
	Ref Ref
	// Mode is as it names it; empty if it says nothing of TLS. TLS is what that means.
	Mode string
	TLS  ClientTLS
	// Settings: it has some for the host, whatever they are about. Of two objects that are merged, the mesh takes those of one.
	Settings bool
	// Place is how it stands to a generated object for the same host.
	Place HandPlace
	// Apart: of two in one namespace, it is for other callers than the generated one, and the mesh does not merge them.
	Apart bool
	// Astray says in a clause why requests may not reach the pods for which they are, Prefix what sidecars send before them, and Named
	// what else it sets that may keep some from pods, and is not evaluated. Each is empty if that is not so.
	Astray, Prefix, Named string
}

// ClientTLS is what callers do.
type ClientTLS string

const (
	// ClientUnset: what they do without the object.
	ClientUnset ClientTLS = ""
	// ClientPlain: they connect without TLS.
	ClientPlain ClientTLS = "plain"
	// ClientMesh: they present the identity that their mesh gives them.
	ClientMesh ClientTLS = "mesh"
	// ClientOther: they do TLS that is not that of their mesh.
	ClientOther ClientTLS = "other"
)

// HandPlace is how an object stands to a generated one for the same host.
type HandPlace string

const (
	// HandInstead: it is used, and the generated one is not.
	HandInstead HandPlace = "instead"
	// HandBeside: they are merged, and of what both say, one is used.
	HandBeside HandPlace = "beside"
	// HandBehind: it is used only if none is generated.
	HandBehind HandPlace = "behind"
)

// PodQuery asks about pods of a namespace.
type PodQuery struct {
	Mesh      *MeshPlan
	Namespace string
	// Pods are the labels of each.
	Pods []map[string]string
	// Ports are those of the pods that are called; nil for all.
	Ports []uint32
}

// ProxySide is where a proxy sees requests.
type ProxySide string

const (
	// SideOutbound: it is the callers'.
	SideOutbound ProxySide = "outbound"
	// SideInbound: it is that of the pods that are called.
	SideInbound ProxySide = "inbound"
	// SideGateway: it is a gateway.
	SideGateway ProxySide = "gateway"
)

// Guard is what users' objects say about calls to a group of pods.
type Guard interface {
	// Pods is how many there are.
	Pods() int
	// Objects are those that say it, ascending.
	Objects() []Ref
	// TLS is what the pods want of connections to one of their ports, and the object that says so.
	TLS(podPort uint32) (TLS, Ref)
	// Decide says what becomes of a call.
	Decide(call *Call) Ruling
}

// TLS is what the pods of a port want of connections.
type TLS string

const (
	// TLSAny: they take what comes, and proxies of their mesh come with certificates.
	TLSAny TLS = ""
	// TLSNone: they take no certificates.
	TLSNone TLS = "none"
	// TLSMutual: they take nobody without a certificate.
	TLSMutual TLS = "mutual"
	// TLSUnmet: as TLSMutual, but callers of their cluster come without one, unless they are told to.
	TLSUnmet TLS = "unmet"
	// TLSUnused: as TLSAny, but callers of their cluster come without one, unless they are told to.
	TLSUnused TLS = "unused"
)

// Call is a request or a connection as the proxies of the pods see it that are called.
type Call struct {
	// HTTP: they see requests; else they see connections, which have no method, path or header.
	HTTP bool
	// AnyRequest: it stands for all requests of its callers. Method, Path and Headers are then empty.
	AnyRequest bool
	// Method is in upper case. Path begins with a slash, and has no query. Headers have names in lower case.
	Method, Path string
	// Query is what follows the path after a question mark.
	Query   string
	Headers map[string]string
	// Caller is what the certificate of the callers names; nil if they present none.
	Caller *Identity
	// PodPort is where the pods listen; 0 with AnyRequest if that does not matter.
	PodPort uint32
}

// Ruling is what users' objects decide about a call. Each Ref is zero if there is none.
type Ruling struct {
	// Denied refuses it, whatever else allows it.
	Denied Ref
	// Allowed lets it in, where calls are closed.
	Allowed Ref
	// Closed lets in nobody but whom something allows.
	Closed Ref
	// MayDeny and MayAllow decide by what is not known, as their What says.
	MayDeny, MayAllow []Intersection
}

// HostQuery asks about a host as a mesh knows it.
type HostQuery struct {
	Host string
	Mesh *MeshPlan
	// Home is the namespace of the service there: for one of another cluster, that of what makes it known.
	Home string
	// Generated: only generated objects make the host known, as that of a federated service.
	Generated bool
	// Sources are the namespaces of the callers that are asked about; nil for all.
	Sources []string
	// Port is that of the requests; 0 for all. Traffic is what proxies see there.
	Port    uint32
	Traffic Traffic
	// Detects: proxies find out by themselves what it is.
	Detects bool
	// Addresses are those to which callers connect; where these are not known, ranges that have them, or none.
	Addresses []netip.Prefix
}

// Intersection is a hand-written object that is about the same as what is generated.
type Intersection struct {
	Ref Ref
	// What says what it does, after its name. Hint says what to do about it.
	What, Hint string
	// First: the callers' proxies take it before what is for all namespaces, whatever their age.
	First bool
}
