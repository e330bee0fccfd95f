package snapshot

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// VirtualDestinationPlan is one VirtualDestination and what became of it.
type VirtualDestinationPlan struct {
	Ref                Ref
	VirtualDestination *enterprisev1beta1.VirtualDestination
	// Hostname is the name by which it is called, Address the virtual IP of it,
	// the same in every mesh.
	Hostname, Address string
	// Port is the one by which it is called, Protocol what is spoken there, in
	// upper case, such as HTTP.
	Port     uint32
	Protocol string
	// Backing are the services behind it: in the order of the spec where that
	// lists them, else ascending.
	Backing []*BackingPlan
	// Views tell, for each mesh that it is exported to, ascending by mesh, what
	// callers there get.
	Views []*VirtualView
	// Outlier says when an endpoint counts as failing; it is never nil in a
	// Plan: without it nothing would ever take over.
	Outlier *Owned[networkingv1.OutlierDetection]
	// Subsets that routes anywhere refer to, ascending by name, and the
	// policies that do.
	Subsets         []Subset
	RequiredSubsets []AppliedTraffic
	// Issues concern all of it, or the Destination in their Target.
	Issues []Issue
}

// BackingPlan is one service behind a VirtualDestination.
type BackingPlan struct {
	Ref         Ref
	Destination *discoveryv1.Destination
	Mesh        *MeshPlan
	// Port is the service's own that takes what arrives.
	Port discoveryv1.KubeServicePort
	// Region of the service; may be empty.
	Region string
	Origin Origin
}

// VirtualView is a VirtualDestination as seen from one mesh.
type VirtualView struct {
	Mesh *MeshPlan
	// Priorities are tried in order: the second one gets what the first has no
	// healthy endpoints for. None means that the mesh cannot call it.
	Priorities []Priority
	// PassedAs is the name by which gateways pass connections on; empty if no
	// target is behind a gateway. Nobody resolves it. It is not Hostname, for
	// which a gateway may know endpoints behind other gateways, too:
	// connections could go round in circles.
	PassedAs string
	// TLS and KeepAlive are nil for the mesh's own.
	TLS       *Owned[networkingv1.TLSMode]
	KeepAlive *Owned[KeepAlive]
	// Issues concern the mesh.
	Issues []Issue
}

// Priority is a group of targets that are equally good.
type Priority struct {
	Targets []VirtualTarget
	// Reason says in a few words why they stand at this place, and Origin what
	// asked for it.
	Reason string
	Origin Origin
}

// VirtualTarget is a backing service as reached from one mesh.
type VirtualTarget struct {
	Backing *BackingPlan
	// Through are the gateways on the way; none where pods are called directly.
	Through []GatewayPlan
}

// Sees reports whether callers in a mesh can call the VirtualDestination.
func (p *VirtualDestinationPlan) Sees(mesh *MeshPlan) bool {
	for _, v := range p.Views {
		if v.Mesh == mesh {
			return len(v.Priorities) > 0
		}
	}
	return false
}

// MaxPriorities is how many priorities a view has at most: the proxies' own
// bound is 128 (Envoy, LocalityLbEndpoints.priority).
const MaxPriorities = 100

// PassedAsMark tells the names of passed-on connections from all others.
const PassedAsMark = "virtualdestination"

// longestLabel of a DNS name.
const longestLabel = 63

// PassedAs is the name by which gateways pass connections to a
// VirtualDestination on: one that no two share, below the suffix that the
// gateways of the VirtualMesh let in.
func PassedAs(virtual Ref, suffix string) string {
	name := virtual.Name
	if len(name) > longestLabel {
		name = Sanitize(name)
	}
	return name + "." + virtual.Namespace + "." + PassedAsMark + "." + suffix
}

// AllIssues are those of the whole and of each mesh.
func (p *VirtualDestinationPlan) AllIssues() []Issue {
	out := p.Issues[:len(p.Issues):len(p.Issues)]
	for _, v := range p.Views {
		out = append(out, v.Issues...)
	}
	return out
}
