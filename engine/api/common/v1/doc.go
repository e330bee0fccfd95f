// Package v1 (commonv1) has the building blocks that several API groups share: references, selectors, string matches
// and the states of a policy.
//
// The types are plain data. They are decoded from and encoded to JSON with the field names of Gloo Mesh 1.x, so that
// manifests written for it apply unmodified. The comments of exported types and fields become the descriptions that
// `kubectl explain` prints; the markers among them become the rules that the API server enforces.
//
// +kubebuilder:object:generate=true
package v1
