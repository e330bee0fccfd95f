// Package v1 (settingsv1) has the kinds of settings.mesh.gloo.solo.io/v1: Settings of the management plane, and of its
// Dashboard.
//
// +kubebuilder:object:generate=true
// +groupName=settings.mesh.gloo.solo.io
package v1
