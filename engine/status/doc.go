// Package status reports the result of a translation to users: the statuses of the
// objects of the management plane, and the list of all issues. Both follow from the
// Plan.
//
//	status.go              the Writer: all statuses, made again only where something changed
//	issues.go              all issues of a translation
//	summary.go             what all statuses have: state, errors, warnings, counts, and bounds
//	conditions.go          the same as standard conditions
//	policy.go              TrafficPolicies and AccessPolicies
//	dependency.go          ServiceDependencies, and the Workloads they are in force on
//	virtualdestination.go  VirtualDestinations, and which of them a mesh sees
//	virtualmesh.go         VirtualMeshes
//	trust.go               the common trust of VirtualMeshes
//	discovered.go          Meshes and Destinations
//	cluster.go             KubernetesClusters
//	settings.go            Settings
package status
