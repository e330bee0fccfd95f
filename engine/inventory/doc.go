// Package inventory indexes what was discovered in all clusters and answers
// which of it a selector means. It knows nothing of policies and VirtualMeshes.
//
//	inventory.go  the meshes, workloads and destinations of all clusters, and how to find one
//	select.go     what the selectors of policies and VirtualMeshes match
//	workloads.go  the workloads that match, by an index of namespaces
//	order.go      which of two objects is older
package inventory
