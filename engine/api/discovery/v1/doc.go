// Package v1 (discoveryv1) has the kinds of discovery.mesh.gloo.solo.io/v1: what has been found in the registered
// clusters. Specs are written by discovery, statuses by networking; users only read them.
//
// Policies that a status carries along are copies, made of objects that the API server has already checked. Their schema
// is left open, so that a rule added later can never keep a status from being written.
//
// +kubebuilder:object:generate=true
// +groupName=discovery.mesh.gloo.solo.io
package v1
