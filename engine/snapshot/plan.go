package snapshot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// State is the result of one translation, with its Input.
type State struct {
	Input *Input
	// Discovered is ascending by cluster.
	Discovered []*Discovered
	Plan       *Plan
	Output     *Output
	// AccessLogs are the verdicts on AccessLogRecords, ascending by Ref.
	AccessLogs []*AccessLogPlan
	// Audited is what would be if all that is audited was enforced: its Output has nothing to write. Nil if nothing is audited.
	Audited *State
}

// Find returns an object as discovery found it, or else as the Input has it; nil if
// there is none.
func (s *State) Find(ref Ref) APIObject {
	for _, d := range s.Discovered {
		if list := d.List(ref.Kind); list != nil && ref.Cluster == "" {
			if o := list.Find(ref.Namespace, ref.Name); o != nil {
				return o
			}
		}
	}
	return s.Input.Find(ref)
}

// Plan is the desired state, independent of any mesh. Renderers turn it into
// objects, and explain answers questions from it. Every value that a user asked
// for has its Origin.
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
	// Dependencies are the verdicts on ServiceDependencies, and Sidecars what
	// follows from them, both ascending by Ref.
	Dependencies []*DependencyPlan
	Sidecars     []*SidecarPlan
	// Externals are the services outside all clusters that routes go to, ascending by Ref.
	Externals []*ExternalPlan
	// Filters are the meshes with routes that need filters which proxies do not
	// have by default, ascending by mesh.
	Filters []*FilterPlan
	// Warnings are about services, whatever policies there are, ordered by Issue.Compare.
	Warnings []Issue
	// Passages are what gateways pass on, ascending by the Destination of the gateway.
	Passages []*PassagePlan
	// Trials are what proxies try because it is audited, ascending by Key.
	Trials []*TrialPlan
}

// PassagePlan says to which hosts a gateway passes connections on that it does not read: those
// that meshctl has made for callers in other clusters, and no others that are known in its mesh.
type PassagePlan struct {
	Mesh    *MeshPlan
	Gateway *GatewayPlan
	// Hosts are ascending; there is at least one. Virtual are those of them that stand for VirtualDestinations, ascending.
	Hosts, Virtual []string
}

// ExternalPlan is a service outside all clusters, and the meshes that call it.
type ExternalPlan struct {
	Ref         Ref
	Destination *discoveryv1.Destination
	// Meshes are those with routes to it, ascending by Ref.
	Meshes []*MeshPlan
	// Policies are the first that send requests to it, ascending.
	Policies []Ref
}

// FilterPlan says which filters the callers' proxies of a mesh must have. They
// have an effect only on routes that enable them.
type FilterPlan struct {
	Mesh            *MeshPlan
	CSRF, RateLimit bool
	// Policies are the first that enable them, ascending.
	Policies []Ref
}

// Origin is the object and field that a value follows from.
type Origin struct {
	Ref Ref `json:"object"`
	// Field is the path below spec, such as "policy.requestTimeout"; empty if it
	// follows from the object as a whole.
	Field string `json:"field,omitempty"`
}

// WithOrigin is a value with its origin.
type WithOrigin[T any] struct {
	Value  T
	Origin Origin
}

// PolicyPlan is the verdict on one policy.
type PolicyPlan struct {
	Ref Ref
	// Verdicts are per selected Destination, ascending by Ref, and IssueCount
	// is how many issues there are in them.
	Verdicts   []Verdict
	IssueCount int
	// Workloads are the first of the selected sources, ascending by Ref, and
	// WorkloadCount says how many there are.
	Workloads     []Ref
	WorkloadCount int
	// Issues on the policy as a whole.
	Issues []Issue
	// Policy is the *TrafficPolicy or *AccessPolicy.
	Policy metav1.Object
	// LastEnforced is the last generation of the policy's spec that was in force
	// on any Destination; 0 if none ever was.
	LastEnforced int64
	// Audited: the policy is not in force, and its verdicts are those that it would have.
	Audited bool
}

// Verdict says whether a policy is in force on one Destination.
type Verdict struct {
	Destination Ref
	// Accepted policies have an Order: 0 has precedence over 1.
	Accepted bool
	Order    uint32
	// Issues say why it is not, or what else to know.
	Issues []Issue
}
