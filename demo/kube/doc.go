// Package kube is the little that a demo asks of an API server: apply
// manifests as a person with kubectl would, look objects up by name, and wait
// until something is true.
//
// It knows no kind of meshctl's: a demo drives the binary like a user.
package kube
