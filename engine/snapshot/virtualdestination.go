package snapshot

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// VirtualDestinationPlan is one VirtualDestination, and how each mesh reaches it. One that users of a registered cluster wrote is seen by
// callers in its own namespace there.
type VirtualDestinationPlan struct {
	Ref                Ref
	VirtualDestination *enterprisev1beta1.VirtualDestination
	// Hostname is the name by which it is called, and Address its virtual IP, which
	// is the same in every mesh. Those of several namespaces (OfNamespace) may have one name, and one address.
	Hostname, Address string
	// Port is the one by which it is called, and Protocol that of the port, in upper
	// case, such as HTTP.
	Port     uint32
	Protocol string
	// Backing are the services behind it: in the order of the spec where that
	// lists them, else ascending.
	Backing []*BackingPlan
	// Views are how callers in each mesh that it is exported to reach it, ascending
	// by mesh.
	Views []*VirtualView
	// Outlier says when an endpoint counts as failing. It is never nil in a Plan:
	// without it there would be no failover.
	Outlier *WithOrigin[networkingv1.OutlierDetection]
	// Subsets that routes anywhere refer to, ascending by name, and the
	// policies that do.
	Subsets         []Subset
	RequiredSubsets []AppliedTraffic
	// Issues are about all of it, or about the Destination in their Target.
	Issues []Issue
}

// BackingPlan is one service behind a VirtualDestination.
type BackingPlan struct {
	Ref         Ref
	Destination *discoveryv1.Destination
	Mesh        *MeshPlan
	// Port is the one of the service that receives the connections.
	Port discoveryv1.KubeServicePort
	// Region of the service; may be empty.
	Region string
	Origin Origin
}

// VirtualView is how one mesh reaches a VirtualDestination.
type VirtualView struct {
	Mesh *MeshPlan
	// Priorities are tried in order: the second gets what the first has no healthy
	// endpoints for. Without any the mesh cannot call it.
	Priorities []Priority
	// PassedAs is the name by which gateways route connections; empty if no target
	// is behind a gateway. Nobody resolves it. It is not Hostname, for which a
	// gateway may know endpoints behind other gateways: connections could loop.
	PassedAs string
	// TLS and KeepAlive are nil for the default of the mesh.
	TLS       *WithOrigin[networkingv1.TLSMode]
	KeepAlive *WithOrigin[KeepAlive]
	// Issues are about the mesh.
	Issues []Issue
}

// WithoutIdentity is the TLS mode with which the callers present no certificate, and so no
// identity; nil if they present one. It is not that of the services behind it, which callers
// know by other names.
func (v *VirtualView) WithoutIdentity() *WithOrigin[networkingv1.TLSMode] {
	if v.PassedAs == "" && v.Mesh.Dialect.SPIFFE && v.TLS != nil && v.TLS.Value != networkingv1.TLSModeIstioMutual {
		return v.TLS
	}
	return nil
}

// Priority is a group of targets that are equally good.
type Priority struct {
	Targets []VirtualTarget
	// Reason says in a few words why they have this place, and Origin what asked
	// for it.
	Reason string
	Origin Origin
}

// VirtualTarget is how one mesh reaches a backing service.
type VirtualTarget struct {
	Backing *BackingPlan
	// Through are the gateways on the way; none where pods are called directly.
	Through []GatewayPlan
}

// OfNamespace reports whether callers in one namespace alone see the VirtualDestination: that of its Ref, in the cluster of its Ref.
func (p *VirtualDestinationPlan) OfNamespace() bool { return p.Ref.Cluster != "" }

// SeenIn reports whether callers in a namespace of a cluster may see the VirtualDestination, in whatever mesh.
func (p *VirtualDestinationPlan) SeenIn(cluster, namespace string) bool {
	return !p.OfNamespace() || p.Ref.Cluster == cluster && p.Ref.Namespace == namespace
}

// Home is the namespace in which a mesh has what is generated for the VirtualDestination. Objects of several namespaces for one host
// must not be in one: a control plane would merge them.
func (p *VirtualDestinationPlan) Home(mesh *MeshPlan) string {
	if p.OfNamespace() {
		return p.Ref.Namespace
	}
	return mesh.Namespace
}

// Sees reports whether callers in a mesh can call the VirtualDestination; of one of a namespace, those for which SeenIn holds.
func (p *VirtualDestinationPlan) Sees(mesh *MeshPlan) bool {
	for _, v := range p.Views {
		if v.Mesh == mesh {
			return len(v.Priorities) > 0
		}
	}
	return false
}

// MaxPriorities bounds the priorities of a view: proxies allow 128 (Envoy,
// LocalityLbEndpoints.priority).
const MaxPriorities = 100

// PassedAsMark is part of every name that PassedAs returns, and of no other.
const PassedAsMark = "virtualdestination"

// longestLabel of a DNS name.
const longestLabel = 63

// PassedAs is the name by which gateways route connections to a
// VirtualDestination. It is unique, and below the suffix that the gateways of
// the VirtualMesh accept.
func PassedAs(virtual Ref, suffix string) string {
	name := virtual.Name
	if len(name) > longestLabel {
		name = Sanitize(name)
	}
	return name + "." + virtual.Namespace + "." + PassedAsMark + "." + suffix
}

// AllIssues are those of the VirtualDestination and of each mesh.
func (p *VirtualDestinationPlan) AllIssues() []Issue {
	out := p.Issues[:len(p.Issues):len(p.Issues)]
	for _, v := range p.Views {
		out = append(out, v.Issues...)
	}
	return out
}
