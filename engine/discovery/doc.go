// Package discovery finds the meshes, workloads and destinations of a cluster
// in its Kubernetes objects. It is pure: one immutable snapshot.Cluster in, one
// snapshot.Discovered out, the same whatever the order of the input.
//
// What it looks for:
//
//   - a Mesh for each control plane (one for each revision of Istio, one
//     for each osm-controller of Open Service Mesh);
//   - a Workload for each Deployment, DaemonSet and StatefulSet of which at
//     least one pod runs a mesh's sidecar, or is in ambient mode;
//   - a Destination for each Service that selects a Workload, or that has the
//     annotation discovery.mesh.gloo.solo.io/enabled: "true".
//
// Everything that depends on the kind of mesh is in its Detector, which is beside its
// renderer (engine/mesh). Gateways are
// no special case: they run a proxy, so they are Workloads, and their Services are
// Destinations with external addresses and node ports, from which federation
// picks. The deprecated ingressGateways of a Mesh are therefore never filled.
//
// # Files
//
//   - discover.go: Discover; stored.go: the same from what is stored of a cluster
//   - index.go: the objects of a cluster, indexed
//   - detector.go: what a Detector is; reads.go: what is read for it of objects
//   - configmaps.go: the ConfigMaps of control planes, and what holds without them
//   - kept.go: what stays known although it is not there at present
//   - evidence.go: which Deployments are believed to be control planes
//   - resolve.go: which control plane a sidecar belongs to
//   - workloads.go; destinations.go, with namespaces.go (Services without workloads),
//     selection.go, endpoints.go, accounts.go (whose pods answer), addresses.go and region.go
//   - ambient.go: pods without a proxy of their own, and waypoints
//   - limits.go: leaves out the newest of what a namespace has too many of
//   - names.go: names that are unique in a cluster; distinct.go: among all clusters;
//     storednames.go: the names that stored objects have
//   - reuse.go: keeps objects that did not change
//   - image.go: names of container images
//
// # Names
//
// A discovered object is called <name>-<namespace>-<cluster> after its source;
// a Workload has -<kind> appended. Characters that names may not have are
// replaced, and what is longer than 63 characters, the kind included, is cut
// to its first 31 and a hash. Of two sources with the same name (a-b in c, and a in
// b-c), the one that is stored with it keeps it, or else the first by cluster,
// namespace and name; the other has a hash appended, and an issue.
package discovery
