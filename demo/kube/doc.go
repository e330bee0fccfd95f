// Package kube is the Kubernetes client of a demo: it applies manifests like
// kubectl, gets objects by name, and waits for conditions.
//
// It does not import types of meshctl: a demo runs the binary like a user.
package kube
