// Package v1 (observabilityv1) has AccessLogRecord of observability.enterprise.mesh.gloo.solo.io/v1.
//
// +kubebuilder:object:generate=true
// +groupName=observability.enterprise.mesh.gloo.solo.io
package v1
