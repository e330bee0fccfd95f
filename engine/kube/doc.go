// Package kube is the one way to an API server, shared by whoever reads or
// writes clusters.
//
//	panic.go    turning a panic over one object into an error
package kube
