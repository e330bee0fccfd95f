// Package v1beta1 (enterprisev1beta1) has kinds of networking.enterprise.mesh.gloo.solo.io/v1beta1: VirtualDestination,
// ServiceDependency and WasmDeployment.
//
// +kubebuilder:object:generate=true
// +groupName=networking.enterprise.mesh.gloo.solo.io
package v1beta1
