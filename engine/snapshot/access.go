package snapshot

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Account is a service account of the same cluster.
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
	// From is ascending and never empty: an empty list means everybody to meshes.
	From []Account
	// Ports are those on which the pods listen, ascending; nil for all.
	Ports []uint32
}

// AccessRule is one AccessPolicy on one Destination.
type AccessRule struct {
	Origin Origin
	// Policy is the *AccessPolicy. If LastGood is set, it has the last accepted spec, and the generation of that.
	Policy   metav1.Object
	LastGood bool
	// Denies: the rule keeps out whom it is for, and what they ask for.
	Denies bool
	// Anyone may call if set, else only Sources. (Sources that turned out to be
	// empty must not mean everybody.)
	Anyone  bool
	Sources []Source
	Paths   []string
	Methods []string
	Ports   []uint32
}

// Callers says who may call a Destination: it is the answer that meshes are configured with.
type Callers struct {
	// Open is set where all callers are let in, whatever the rules say.
	Open Openness
	// Rules are for callers whose identity the pods see. They hold for all pods of the service.
	Rules []EffectiveRule
	// SharedWith are Destinations in front of the same pods whose AccessPolicies restrict Rules,
	// ascending; one of each set of policies. A mesh applies what is allowed on one service to all
	// of its pods, so that callers must be allowed on each of the services. There are no Rules if
	// that allows nobody, or is too much to write.
	SharedWith []Ref
	// Relayed are for callers of other members of a Limited mesh, of whom the pods see a gateway
	// only: those that are not for anyone have the same conditions on requests.
	Relayed []EffectiveRule
	// NotRelayed are the policies that have other conditions, ascending: they let in no such
	// caller.
	NotRelayed []Ref
	// Unidentified are the meshes whose callers present no identity, the own one first, so that
	// only a rule for anyone lets them in.
	Unidentified []UnidentifiedCallers
}

// Denials say who may not call a Destination, whatever lets them in.
type Denials struct {
	// Policies are those with action DENY that are in force there, ascending by Ref.
	Policies []*AccessRule
	// Rules are what pods refuse. Of a rule that is not for anyone, callers without identity are not refused.
	Rules []EffectiveRule
	// Relayed are for callers of other members of a Limited mesh, which their own gateways refuse: they are not for anyone, and have
	// no conditions on requests, as gateways read none.
	Relayed []EffectiveRule
	// Unidentified are the meshes whose callers present no identity, the own one first, if any of Rules is not for anyone.
	Unidentified []UnidentifiedCallers
}

// Openness is why a Destination lets all callers in.
type Openness string

const (
	// OpenNot: it does not; the rules decide.
	OpenNot Openness = ""
	// OpenByDefault: no AccessPolicy is in force there, and the mesh does not deny by default.
	OpenByDefault Openness = "default"
	// OpenAsGateway: it is a gateway, which stays open where access is denied by default.
	OpenAsGateway Openness = "gateway"
	// OpenByMesh: the mesh allows all calls, whatever AccessPolicies say.
	OpenByMesh Openness = "mesh"
)

// UnidentifiedCallers are those of a mesh that call with a TLS mode without certificates.
type UnidentifiedCallers struct {
	Mesh Ref
	TLS  WithOrigin[networkingv1.TLSMode]
}

// EffectiveRule is what an AccessPolicy allows on a service: less than it says where policies on
// services with the same pods restrict it.
type EffectiveRule struct {
	// Policy is in force on the service itself. With are those on other services that
	// narrow it, ascending.
	Policy Ref
	With   []Ref
	// The conditions are those of AccessRule, but PodPorts are where the pods listen.
	Anyone   bool
	Sources  []Source
	Paths    []string
	Methods  []string
	PodPorts []uint32
}

// Source is a set of callers: identities, or whole namespaces of any trust
// domain. If both are given, callers must match both.
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

// NoTrustDomain is that of callers whose certificates have no SPIFFE identity, as
// in Open Service Mesh. Only their own mesh knows them, by service account.
const NoTrustDomain = ""

// ExpressibleIn reports whether the configuration of a mesh with the given trust
// domain can name the identity. If the mesh has another trust domain than
// DefaultTrustDomain, one of DefaultTrustDomain would mean its own callers.
func (id Identity) ExpressibleIn(trustDomain string) bool {
	return id.TrustDomain != NoTrustDomain && (id.TrustDomain != DefaultTrustDomain || trustDomain == DefaultTrustDomain)
}
