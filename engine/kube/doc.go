// Package kube is the client of API servers for all packages that read or write
// clusters, so that all of them limit, probe, list, retry and explain in the same way.
//
//	client.go    a client without limits of its own, and paths of kinds
//	clientset.go typed clients of the API groups that are used
//	lister.go    listing and watching a kind, which the server may not serve
//	forward.go   pages of what pods serve, by port-forward; upgrade.go is its connection where a transport is given
//	silence.go   watches that deliver nothing
//	bounds.go    what one server may send, and make its reader hold
//	budget.go    what is counted for that, before it takes memory
//	weight.go    what encoded and decoded objects take in memory
//	arrive.go    lists that are not complete yet
//	probe.go     asking whether a server is ready
//	reached.go   whether an address leads to a server at all
//	reason.go    why a server or a request failed, in stable sentences
//	text.go      an error for people, without the method and path of requests
//	expired.go   whether a credential that a server rejects has expired
//	backoff.go   pauses between attempts
//	panic.go     turning a panic over one object into an error
package kube
