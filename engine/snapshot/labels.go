package snapshot

// Labels and annotations on generated objects, as Gloo Mesh 1.x has them.
const (
	// DiscoveryOwnerLabel is on Mesh, Workload and Destination; its value is
	// the management namespace.
	DiscoveryOwnerLabel = "owner.discovery.mesh.gloo.solo.io"
	// DiscoveryClusterLabel is on the same objects: the cluster of their source.
	DiscoveryClusterLabel = "cluster.discovery.mesh.gloo.solo.io"
	// NetworkingOwnerLabel is on every translated object; its value is the
	// management namespace.
	NetworkingOwnerLabel = "owner.networking.mesh.gloo.solo.io"
	// PlaneLabel is on every translated object: the identity of the management plane
	// that wrote it. Objects that versions before had written do not have it.
	PlaneLabel = "plane.multicluster.solo.io"
	// ClusterLabel is on every object written: the cluster written to, empty
	// on the management plane.
	ClusterLabel = "cluster.multicluster.solo.io"
	// ParentsAnnotation lists, as JSON, the objects that contributed, the first of each
	// kind if they are many.
	ParentsAnnotation = "parents.networking.mesh.gloo.solo.io"
	// RelationsAnnotation has the Relations of an object, for a sink that starts later.
	RelationsAnnotation = "relations.networking.mesh.gloo.solo.io"
	// FederationAnnotation is on federated objects: <name>.<namespace>.<cluster> of the Service.
	FederationAnnotation = "federation.networking.mesh.gloo.solo.io"
	// DiscoverServiceAnnotation, "true" on a Service, makes it a Destination
	// though no workload of a mesh stands behind it.
	DiscoverServiceAnnotation = "discovery.mesh.gloo.solo.io/enabled"
	// FieldManager is the name under which objects are applied.
	FieldManager = "meshctl"
)
