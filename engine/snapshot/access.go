package snapshot

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
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
	// Policy is the *AccessPolicy.
	Policy metav1.Object
	// Anyone may call if set, else only Sources. (Sources that turned out to be
	// empty must not mean everybody.)
	Anyone  bool
	Sources []Source
	Paths   []string
	Methods []string
	Ports   []uint32
}

// SharedAccess is who may call a service that shares pods with services on which other
// AccessPolicies are in force: a mesh applies what is allowed on one service to all of
// its pods, so callers must be allowed on each of the services.
type SharedAccess struct {
	// With are the Destinations whose AccessPolicies restrict those of this one, ascending;
	// one of each set of policies.
	With []Ref
	// Rules are what is allowed instead of what the policies say by themselves; none if
	// that is nothing, or too much to write.
	Rules []EffectiveRule
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

// Effective is what a policy allows on a service by itself.
func (r *AccessRule) Effective(service *discoveryv1.KubeService) EffectiveRule {
	return EffectiveRule{
		Policy: r.Origin.Ref, Anyone: r.Anyone, Sources: r.Sources,
		Paths: r.Paths, Methods: r.Methods, PodPorts: PodPorts(service, r.Ports),
	}
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
