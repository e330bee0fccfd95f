// Package status tells users what became of what they wrote: the statuses of the
// objects of the management plane, and the list of all issues. Both follow from
// the Plan.
//
//	status.go              the Writer: all statuses, made again only where something changed
//	issues.go              all issues of a translation
//	summary.go             what any status says: state, errors, warnings, counts; and its bounds
//	policy.go              TrafficPolicies and AccessPolicies
//	dependency.go          ServiceDependencies, and the Workloads they are in force on
//	virtualdestination.go  VirtualDestinations, and which of them a mesh sees
//	virtualmesh.go         VirtualMeshes
//	discovered.go          Meshes and Destinations
//	cluster.go             KubernetesClusters
//	settings.go            Settings
package status
