package snapshot

import (
	"slices"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// DestinationPlan is one service: how each mesh reaches it, and who may call it.
type DestinationPlan struct {
	Ref         Ref
	Destination *discoveryv1.Destination
	Mesh        *MeshPlan
	// LocalFQDN is the service's name in its own cluster.
	LocalFQDN string
	// Federation is nil if no other mesh sees the service.
	Federation *Federation
	// LeftOut says why there is no Federation although a VirtualMesh selects the service;
	// zero if there is, or if none does.
	LeftOut Unfederated
	// Offered is where a VirtualMesh in mode DECLARED lets it be imported; nil without one.
	Offered *Offer
	// Views are how its own mesh reaches it (always first), and how each mesh does
	// that it is federated to and that needs configuration of its own.
	Views []*View
	// Traffic are the TrafficPolicies in force here, in order of precedence.
	Traffic []AppliedTraffic
	// Access are the AccessPolicies in force here that allow something, ascending by Ref.
	Access []*AccessRule
	// Callers is what follows from Access and the mesh; nil if it is open by default.
	Callers *Callers
	// Denials is whom AccessPolicies with action DENY keep out, who are not among Access; nil if there are none.
	Denials *Denials
	// RequiredSubsets are the policies in force anywhere that shift traffic to
	// subsets of the service, ascending by Ref.
	RequiredSubsets []AppliedTraffic
	// Grants express Access where the mesh knows service accounts only.
	Grants []*Grant
}

// LimitHint is the next step where a limit leaves services out of federation.
const LimitHint = "remove services there that nobody needs, select fewer with federation.selectors of the VirtualMesh, or raise the limit"

// Unfederated is why a service is not federated, and the next step.
type Unfederated struct{ Why, Hint string }

// NotFederated is LeftOut in words; empty if it is.
func (d *DestinationPlan) NotFederated() string { return Sentences(d.LeftOut.Why, d.LeftOut.Hint) }

// Open is why all callers are let in.
func (d *DestinationPlan) Open() Openness {
	if d.Callers == nil {
		return OpenByDefault
	}
	return d.Callers.Open
}

// AccessInForce are all AccessPolicies in force, ascending by Ref.
func (d *DestinationPlan) AccessInForce() []*AccessRule {
	if d.Denials == nil {
		return d.Access
	}
	out := slices.Concat(d.Access, d.Denials.Policies)
	slices.SortFunc(out, func(a, b *AccessRule) int { return a.Origin.Ref.Compare(b.Origin.Ref) })
	return out
}

// MeshRef is the mesh of the service; zero if that is not known, as where two claim it.
func (d *DestinationPlan) MeshRef() Ref {
	if d.Mesh == nil {
		return Ref{}
	}
	return d.Mesh.Ref
}

// ThroughGateways reports whether callers of a mesh see gateways instead of the pods.
func (d *DestinationPlan) ThroughGateways(mesh *MeshPlan) bool {
	return d.Federation != nil && !d.Federation.Flat && mesh.Cluster != d.Mesh.Cluster
}

// WithoutIdentity is the TLS mode with which callers of a mesh present no certificate,
// and so no identity; nil if they present one.
func (d *DestinationPlan) WithoutIdentity(mesh *MeshPlan) *WithOrigin[networkingv1.TLSMode] {
	for _, v := range d.Views {
		if tls := v.WithoutIdentity(); v.Mesh == mesh && tls != nil {
			return tls
		}
	}
	return nil
}

// WithoutIdentity is that of the DestinationPlan for the mesh of the view.
func (v *View) WithoutIdentity() *WithOrigin[networkingv1.TLSMode] {
	if v.TLS == nil || v.TLS.Value == networkingv1.TLSModeIstioMutual || !v.Mesh.Dialect.SPIFFE {
		return nil
	}
	return v.TLS
}

// AppliedTraffic is a TrafficPolicy in force on a Destination.
type AppliedTraffic struct {
	Policy *networkingv1.TrafficPolicy
	// Spec is that of the policy, or the last accepted one if that is invalid. It also
	// names the targets that are missing at present.
	Spec *networkingv1.TrafficPolicySpec
	// LastGood is set if Spec is the last accepted one.
	LastGood bool
	// Missing is set if a mesh cannot reach a target of Spec, which gets no requests then.
	Missing bool
	// Generation of the policy that had Spec.
	Generation int64
}

// Federation is how other meshes reach a service.
type Federation struct {
	// Hostname is <service>.<namespace>.svc.<cluster>.<suffix>.
	Hostname string
	// Address is the virtual IP of Hostname, the same in every mesh.
	Address string
	// To are the meshes, ascending by Ref.
	To []*MeshPlan
	// ImportedBy is what declares that the callers of each of To need it, by index; nil if nothing has to.
	ImportedBy [][]Origin
	// Flat: pods are reached without gateways.
	Flat bool
	// Limited: callers connect to gateways of their own mesh, these to gateways of the
	// service's mesh, and these to the pods. Each connection has its own TLS.
	Limited bool
	// KeepAlive is set on connections between clusters; nil for the default of the mesh.
	KeepAlive *WithOrigin[KeepAlive]
	// Origin is the VirtualMesh's federation.
	Origin Origin
	// Issues are those of the VirtualMesh because of which some of To cannot call the
	// service.
	Issues []Issue
}

// KeepAlive are TCP keep-alive probes.
type KeepAlive struct {
	// Probes is how many may go unanswered.
	Probes uint32
	// Time is the idle time before the first probe, Interval between probes.
	Time, Interval time.Duration
}

// View is how one mesh reaches a Destination.
type View struct {
	Mesh *MeshPlan
	// Host is the name by which the mesh calls the service.
	Host string
	// Routes are in the order of matching; the last one matches everything.
	// Without any, requests go to the service unchanged.
	Routes []*Route
	// Subsets that routes anywhere refer to, ascending by name.
	Subsets []Subset
	Outlier *WithOrigin[networkingv1.OutlierDetection]
	TLS     *WithOrigin[networkingv1.TLSMode]
	// KeepAlive is set on views from other clusters only.
	KeepAlive *WithOrigin[KeepAlive]
}

// Subset is a named part of a service's endpoints.
type Subset struct {
	Name   string
	Labels map[string]string
}

// Route is what happens to requests that match.
type Route struct {
	Match Match
	// Key is unique among the routes of the Destination, and depends on Match only;
	// empty for the catch-all that no policy asked for.
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

// Action is what all policies for the same requests do with them, field by field.
type Action struct {
	// Policies that it follows from, in order of precedence; none for the catch-all
	// that leaves other requests unchanged.
	Policies []Ref
	// Targets is nil if requests go to the Destination itself.
	Targets *WithOrigin[[]Target]
	// Missing are the targets that a policy asks for and that cannot be reached any
	// more: Targets, or the Destination itself, take their share. Nil if there are none.
	Missing *WithOrigin[[]MissingTarget]
	Timeout *WithOrigin[time.Duration]
	Retries *WithOrigin[Retries]
	Delay   *WithOrigin[Delay]
	Abort   *WithOrigin[Abort]
	CORS    *WithOrigin[networkingv1.CorsPolicy]
	Mirror  *WithOrigin[MirrorTarget]
	Headers *WithOrigin[networkingv1.HeaderManipulation]
	CSRF    *WithOrigin[CSRF]
	// RateLimit counts the requests of each caller's proxy separately.
	RateLimit *WithOrigin[RateLimit]
}

// CSRF compares the origin of requests that change something with their host.
type CSRF struct {
	// Shadow counts the requests that fail; without it they are refused.
	Shadow bool
	// Percent of the requests that are checked, 0 to 100.
	Percent float64
	// Origins are hosts, with ports if any, that are allowed besides the request's own.
	Origins []commonv1.StringMatch
}

// RateLimit allows a number of requests in each interval.
type RateLimit struct {
	// Requests is never 0.
	Requests uint32
	Per      time.Duration
}

// Target is one of the services that a Route sends requests to.
type Target struct {
	Destination Ref
	// Host is the target's name in the mesh of the View.
	Host string
	// Port is never 0.
	Port uint32
	// Subset is empty for all endpoints.
	Subset string
	Weight uint32
	// Place is where the target is.
	Place Place
	// Headers are changed for this target only; nil for none.
	Headers *networkingv1.HeaderManipulation
}

// Place is where the requests for a host go, as seen from the mesh of a View.
type Place uint8

const (
	// PlaceHere: to a service of the callers' own cluster, by a name that each cluster has.
	PlaceHere Place = iota
	// PlaceElsewhere: to a service of another cluster, by the name of its federation.
	PlaceElsewhere
	// PlaceVirtual: to the services behind a VirtualDestination.
	PlaceVirtual
	// PlaceOutside: to a service outside all clusters.
	PlaceOutside
)

// MissingTarget is a target that gets no requests because it cannot be reached.
type MissingTarget struct {
	// Name is what the policy calls it, with its kind.
	Name string
	// Cluster is empty if the target is in none or in several.
	Cluster string
	// Subset is empty for all endpoints.
	Subset string
	Weight uint32
}

// Delay holds requests back.
type Delay struct {
	Duration time.Duration
	// Percent of the requests, 0 to 100.
	Percent float64
}

// Abort answers requests instead of the service.
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
	// Place is where the service is.
	Place Place
	// Percent of the requests, 0 to 100.
	Percent float64
}
