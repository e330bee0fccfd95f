// Package verify finds out what the control plane of a mesh signs with, and what its workloads trust and present, in one
// cluster. The agent changes cacerts only by what is found here.
//
// Looker.Look looks once. It asks each pod of the control plane for a certificate, as a sidecar does; reads the ConfigMaps
// with the root; and connects to workloads with the certificate that it was given. Judge decides what follows; it is pure,
// and errs on one side only: it never says that a workload trusts a root, or presents no other one, before that is so. It
// does not speak of namespaces that are left out.
//
// # What can be seen
//
// A TLS handshake with a sidecar shows three things: the chain that it presents; whether it accepts a certificate of the
// root that the control plane signs with; and, in its request for a certificate, the names of all roots that it trusts
// (RFC 5246, section 7.4.4; Envoy fills them in: source/common/tls/cert_validator/default_validator.cc,
// addClientValidationContext). The names show trust in a root with which nothing is signed yet, provided that no other
// root has the same name.
//
// Gateways are not connected to: their ports have certificates of their users, or lead on to other workloads.
//
// # What is derived
//
// Of a workload that cannot be seen, what it holds follows from when it got it (derive.go). Times are those of three
// clocks: the agent's, the API server's (when a pod was created) and the node's (when its proxy started). The first two
// are compared on each look; the third is believed only with a minute's distance.
//
// # Which pods count
//
// Those with a proxy that Istio's injector made (istio.io: annotation sidecar.istio.io/status), that are a gateway, or that
// were seen to speak mutual TLS. Whoever may create a pod can write all of that; so a namespace is waited for only for a time
// (behind.go).
//
// Of these, those whose proxy runs, also while they are not ready, or end: until a pod is gone it may have connections. A pod whose
// proxy has not started, or waits to be started again, does not count: it will get what is handed out by then. One that
// should have ended a minute ago does not count either: its node is lost.
//
// # What cannot be known
//
// A control plane that signed with another root between two looks, and no longer does. A workload outside of the cluster.
//
// # Files
//
//	types.go      Request, Observed, Result
//	pods.go       what a pod's object says
//	judge.go      Judge: counts and lists
//	behind.go     which namespaces are not waited for any more
//	derive.go     what one workload trusts and presents
//	signing.go    since when the control plane signs and hands out what
//	ask.go        Ask: a certificate from istiod
//	handshake.go  Greet: a TLS handshake with a workload
//	look.go       Looker: reads, asks and connects
//	memory.go     what a Looker need not see again
package verify
