package snapshot

import (
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Level is how well a mesh supports a field. The zero Level is that
// of an undeclared field.
type Level uint8

const (
	// Enforced: the mesh does what the field says.
	Enforced Level = iota + 1
	// Approximated: the mesh does something close to it, never less strict; the
	// status of a policy with the field names the difference.
	Approximated
	// NotExpressible: the mesh cannot do it. A TrafficPolicy or AccessPolicy
	// that has the field is INVALID there, and nothing weaker is written.
	NotExpressible
)

// String returns "enforced", "approximated" or "not expressible".
func (l Level) String() string {
	return [...]string{"undeclared", "enforced", "approximated", "not expressible"}[l]
}

// Support is what a mesh can do of one field.
type Support struct {
	Kind Kind
	// Path of the field below spec, as FieldsOf returns it. It is about
	// everything below the field, too, that has no line of its own.
	Path string
	// Case narrows the line to certain values, in words; empty for all others.
	Case string
	Level
	// Note says in a clause what is different, or why it is not supported.
	Note string
}

// Declare makes the declarations of fields with the same Level.
func Declare(kind Kind, level Level, note string, paths ...string) []Support {
	out := make([]Support, 0, len(paths))
	for _, path := range paths {
		out = append(out, Support{Kind: kind, Path: path, Level: level, Note: note})
	}
	return out
}

// Security reports whether a field decides who may call or read: if a mesh
// cannot do it, leaving it out would allow more than was written.
func (s Support) Security() bool {
	switch s.Kind {
	case AccessPolicy:
		return true
	case TrafficPolicy:
		return within(s.Path, "policy.mtls") || within(s.Path, "policy.csrf") || within(s.Path, "policy.corsPolicy")
	case VirtualMesh:
		return within(s.Path, "mtlsConfig") || within(s.Path, "globalAccessPolicy")
	case Settings:
		return within(s.Path, "mtls")
	default:
		return false
	}
}

func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+".")
}

// Cases are values of fields that not all meshes treat alike.
const (
	OtherCluster    = "in another cluster"
	OtherNamespace  = "in another namespace"
	OtherPort       = "other than the request's"
	Headless        = "that is headless"
	NotMutual       = "DISABLE, SIMPLE"
	Omitted         = "omitted"
	PathTemplate    = "with {*} or {**}"
	UnusualMethod   = "not among the nine of HTTP"
	AccessEnabled   = "ENABLED"
	AccessDisabled  = "DISABLED"
	SharedAccount   = "of pods that share their service account with others"
	OpenMesh        = "of a mesh that allows all calls"
	BesideCondition = "beside httpRequestMatchers, or labels or namespaces of sources"
	ThroughGateways = "of callers in other clusters, through gateways"
	NotMutualBeside = NotMutual + " " + BesideCondition
	Denying         = "DENY"
)

// Regard is what answers do with something that decides about requests beside policies.
type Regard string

const (
	// Followed: answers follow it.
	Followed Regard = "followed"
	// Named: answers and issues name it, and say that they do not follow it.
	Named Regard = "named"
	// Ignored: it is not looked at, so that answers may be wrong where there is some.
	Ignored Regard = "not looked at"
)

// Outside is something that decides about requests beside policies.
type Outside struct {
	What string
	Regard
	// Note says what of it, in a clause; may be empty.
	Note string
}

// PodTraits are what the labels of a pod say about calls to it.
type PodTraits struct {
	// Plain says in a clause because of what callers of its own mesh present no identity to it; empty if they do.
	Plain string
	// Network is the one that it is in: callers in another one connect to a gateway, if there is one. Empty if it is not named.
	Network string
	// Waypoint is the one that it asks for itself; empty if none.
	Waypoint string
}

// Dialect declares what a kind of mesh supports: all that the planner knows about
// the kind. It is read-only, and compared by pointer.
type Dialect struct {
	// Type is the kind, as MeshType returns it.
	Type string
	// Name is the mesh's, as in messages.
	Name string
	// Fields are the declarations; no two are for the same field and case.
	Fields []Support
	// Ambient are the next steps about pods in ambient mode; nil if the mesh has no such mode.
	Ambient *AmbientHints
	// Describe fills in what the spec of a mesh says about it: trust domains, the
	// root namespace, DNS, and who may call whom. Cluster and namespace are set.
	// Nil if specs of the kind say nothing.
	Describe func(*MeshPlan)

	// Inspect finds what users wrote for meshes of the kind in a cluster, beside what a management plane generated. Nil if nothing
	// is read of that.
	Inspect func(*Cluster, Plane) ByHand

	// Outside is what decides about requests beside policies.
	Outside []Outside

	// ByAge tells the hosts of an object that a user wrote, or the labels of the pods that it selects, if of two objects for the same the
	// mesh uses the older one. Nil if it never does.
	ByAge func(APIObject) (hosts []string, pods map[string]string)

	// PodTraits are what the labels of pods of a mesh say about calls to them. Nil if they say nothing.
	PodTraits func(mesh *MeshPlan, labels map[string]string) PodTraits

	// Unknown says why callers in a namespace of a mesh do not know one of its services, or, if that is nil, what only generated
	// objects make known; empty if they do. Nil if all do.
	Unknown func(mesh *MeshPlan, service *discoveryv1.KubeService, namespace string) string

	// Egress is the kind of object that a SidecarPlan becomes; NoKind if proxies of the mesh know all hosts.
	Egress Kind

	// Reads are the kinds that users write for meshes of the kind and that are read of clusters (KindInfo.ByHand), each with what removes
	// from an object in place all that nobody looks at.
	Reads map[Kind]func(APIObject)

	// Proxies is how what proxies hold is read; nil if it is not.
	Proxies *ProxyNames

	// SPIFFE: proxies have certificates with SPIFFE identities, and check those of
	// callers against the trust domains that their mesh accepts.
	SPIFFE bool
	// Tries reports whether the proxies of a service, or with nil all of a mesh, can try who would be refused (see TrialPlan); nil if they
	// never can.
	Tries func(mesh *MeshPlan, service *discoveryv1.KubeService) bool
	// Principal is the name in the certificates of a service account's pods.
	Principal func(trustDomain, namespace, account string) string
	// CA is where control planes of the kind have what they sign with; nil if that cannot be exchanged.
	CA *ControlPlaneCA
	// Gateways is how the pods of gateways are labelled; may be nil.
	Gateways *GatewayLabels
	// ResolveHint says how to make callers of a mesh resolve any host name.
	ResolveHint string
	// TrustHint says how to make a mesh accept callers of other trust domains; apart: and
	// tell them from its own.
	TrustHint func(mesh, trustDomains string, apart bool) string

	// MutualHint says how to have the pods of a service take nobody without a certificate; may be empty.
	MutualHint string

	// RootHint says how to give meshes a common root, and RootUnknownHint where the
	// roots of a mesh are read.
	RootHint, RootUnknownHint string

	// ByAccount: callers and services are identified by their service accounts only,
	// and access is denied unless something allows it.
	ByAccount bool
	// KeepsPort: requests keep their port when they are sent to another service.
	KeepsPort bool
	// SeesRequests reports whether proxies of the mesh tell requests apart on a
	// port; nil if they do so by PortProtocol. See IsHTTP.
	SeesRequests func(*discoveryv1.KubeServicePort) bool
	// Inexpressible lists the values of a grant that are cases of Fields which cannot
	// be expressed; nil if there are no such cases.
	Inexpressible func(*Grant) []CaseValue
	// Beside says why two grants to the same account would together allow other
	// requests than both do alone; empty if they do not.
	Beside func(a, b *Grant) string
}

// ControlPlaneCA is where a control plane has what it signs the certificates of proxies with.
type ControlPlaneCA struct {
	// Secret, in the namespace of the control plane, is what it takes its CA from.
	Secret string
	// ConfigMap is where it writes the roots that proxies trust, in each namespace.
	ConfigMap string
	// Key is that of the roots in both.
	Key string
	// Account is the service account of a control plane.
	Account func(*discoveryv1.MeshSpec) string
}

// unknown is for meshes that no renderer is for.
var unknown = &Dialect{
	Type: "unknown", Name: "meshes of this kind",
	Fields: slices.Concat(
		unsupported(TrafficPolicy), unsupported(AccessPolicy), unsupported(VirtualMesh), unsupported(VirtualDestination),
		unsupported(ServiceDependency), unsupported(Settings),
	),
}

func unsupported(kind Kind) []Support {
	return Declare(kind, NotExpressible, "this version of meshctl does not support them", "")
}

// DialectOf finds the dialect of a mesh. One of a kind that is not among the
// dialects supports nothing.
func DialectOf(dialects []*Dialect, mesh *discoveryv1.Mesh) *Dialect {
	kind, _ := MeshType(&mesh.Spec)
	for _, d := range dialects {
		if d.Type == kind {
			return d
		}
	}
	return unknown
}

// CaseValue is a value that falls under a Case of a declared field.
type CaseValue struct{ Path, Case, Value string }

// Of is the declaration for a field: its own, or that of the nearest field above
// it, or of the kind as a whole (which has an empty path). False if there is none.
func (d *Dialect) Of(kind Kind, path, of string) (Support, bool) {
	for {
		for i := range d.Fields {
			if f := &d.Fields[i]; f.Kind == kind && f.Path == path && f.Case == of {
				return *f, true
			}
		}
		if path == "" {
			return Support{}, false
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
}

// Supports reports whether a mesh can do anything of a field and what is below it,
// and if not, why. An empty path is all of the kind.
func (d *Dialect) Supports(kind Kind, path string) (ok bool, why string) {
	if s, declared := d.Of(kind, path, ""); declared {
		ok, why = s.Level != NotExpressible, s.Note
	}
	for i := range d.Fields {
		if f := &d.Fields[i]; f.Kind == kind && f.Case == "" && (path == "" || within(f.Path, path)) {
			if f.Level != NotExpressible {
				return true, ""
			}
			why = f.Note
		}
	}
	return ok, why
}
