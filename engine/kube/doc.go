// Package kube is the one way to an API server. Whoever reads or writes clusters
// uses it, so that all of them limit, probe, list, retry and explain alike.
//
//	client.go    a client without limits of its own, and paths of kinds
//	lister.go    listing and watching a kind, which the server may not serve
//	probe.go     asking whether a server is ready
//	reason.go    why a server or a request failed, in stable sentences
//	backoff.go   pauses between tries
//	panic.go     turning a panic over one object into an error
package kube
