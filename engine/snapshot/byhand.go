package snapshot

import discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"

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
	// Access are those that also say who may call the pods of a service of a mesh.
	Access(service *discoveryv1.KubeService, mesh *MeshPlan) []Intersection
	// Egress are those that also say what workloads of a namespace may call. Pods are the labels of the pods of each.
	Egress(namespace string, pods []map[string]string) []Intersection
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
}

// Intersection is a hand-written object that is about the same as what is generated.
type Intersection struct {
	Ref Ref
	// What says what it does, after its name. Hint says what to do about it.
	What, Hint string
}
