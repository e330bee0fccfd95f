// Package v1 (networkingv1) has the kinds of networking.mesh.gloo.solo.io/v1, which users write: TrafficPolicy,
// AccessPolicy and VirtualMesh.
//
// +kubebuilder:object:generate=true
// +groupName=networking.mesh.gloo.solo.io
package v1
