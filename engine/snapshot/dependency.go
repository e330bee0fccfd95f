package snapshot

import (
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
)

// DependencyPlan is the verdict on one ServiceDependency.
type DependencyPlan struct {
	Ref        Ref
	Dependency *enterprisev1beta1.ServiceDependency
	// Verdicts are per selected Workload, ascending by Ref; each has it as its
	// Destination. IssueCount is how many issues there are in them.
	Verdicts   []Verdict
	IssueCount int
	// Issues on the ServiceDependency as a whole.
	Issues []Issue
}

// SidecarPlan limits the hosts that the proxies of some pods know. Proxies
// without one know all.
type SidecarPlan struct {
	// Ref is that of the generated object.
	Ref  Ref
	Mesh *MeshPlan
	// Selector are the labels that only its pods have.
	Selector map[string]string
	// Workloads are those that the pods belong to, ascending by Ref.
	Workloads []Ref
	// Egress is shared by the plans whose pods depend on the same.
	Egress *Egress
}

// Egress is the set of hosts that proxies know.
type Egress struct {
	// Dependencies are the ServiceDependencies it follows from, ascending by Ref.
	Dependencies []Ref
	// Everything: one of them names no destinations, so all hosts are known.
	Everything bool
	// Hosts are ascending by Host; nil if Everything.
	Hosts []EgressHost
}

// EgressHost is a host name, or a pattern of them, that proxies know.
type EgressHost struct {
	// Namespace is where the host is declared; empty for any.
	Namespace string
	// Host may begin with "*.".
	Host string
	// Destination is the one of that name; zero for a pattern.
	Destination Ref
	// Origins are what needs it, ascending by Ref: ServiceDependencies, and policies
	// that send requests for a host that these name to another one. A host without
	// any is one that every proxy needs.
	Origins []Origin
}
