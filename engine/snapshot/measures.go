package snapshot

import corev1 "k8s.io/api/core/v1"

// Measure is one of the numbers that proxies count about requests and connections.
type Measure uint8

// The measures. Answers are those that callers get at last: a request that is tried again counts once. Answers that the proxy gives in
// place of the service, because of one of the failures, count among them, too.
const (
	// Answered1xx to Answered5xx are requests by the class of their answer, and Unanswered those without one.
	Answered1xx Measure = iota
	Answered2xx
	Answered3xx
	Answered4xx
	Answered5xx
	Unanswered
	// Retried are attempts after the first one.
	Retried
	// TimedOut to TLSFailed are failures by their reason: no answer in time, a reset by the other side, a limit of requests that wait, a
	// connection that was not made, no endpoint that is healthy, and a certificate or handshake that was refused.
	TimedOut
	ResetByPeer
	Overflowed
	NotConnected
	NoneHealthy
	TLSFailed
	// Connected are connections that were opened. SentBytes went to the destination, and ReceivedBytes came from it.
	Connected
	SentBytes
	ReceivedBytes
	// LetIn and Refused are requests by what the access policies of the called proxy said, and ShadowRefused those that policies would refuse
	// that only observe.
	LetIn
	Refused
	ShadowRefused
	// NoCluster and NoRoute are requests for which a proxy had no cluster, or no route.
	NoCluster
	NoRoute
	// Forbidden are those of Answered4xx that were answered with 403, and calls of gRPC with its status 7, PERMISSION_DENIED: by access
	// policies or by applications, which callers cannot tell apart.
	Forbidden
	// Handshakes are those of TLS with the destination that were completed, one for each connection that is encrypted.
	Handshakes
	// ShadowLetIn are requests that policies would let in that only observe. A proxy that observes who is let in and who is denied counts a
	// request for each.
	ShadowLetIn
	// Latency is no counter but a histogram of the time until the answer, in milliseconds. It is the last measure.
	Latency
)

var measureNames = [...]string{
	"1xx", "2xx", "3xx", "4xx", "5xx", "none", "retries", "timeout", "reset", "overflow", "connect", "no_healthy", "tls",
	"connections", "sent_bytes", "received_bytes", "allowed", "denied", "shadow_denied", "no_cluster", "no_route", "403", "handshakes", "shadow_allowed", "latency",
}

// String is the name of the measure in JSON and metrics, such as "2xx".
func (m Measure) String() string { return measureNames[m] }

// Requests: the measure is of requests by the class of their answer.
func (m Measure) Requests() bool { return m <= Unanswered }

// Failed: the measure is of requests that were answered with 5xx, or not at all.
func (m Measure) Failed() bool { return m == Answered5xx || m == Unanswered }

// Failure: the measure is of failures by their reason.
func (m Measure) Failure() bool {
	return m >= TimedOut && m <= TLSFailed || m == NoCluster || m == NoRoute
}

// ProxyStats is how proxies of a kind of mesh say what they did: pages in Prometheus' text format.
type ProxyStats struct {
	// Port of a pod serves them. Path is the page with all that is read of it, of what was used; Unused is a page with one number of each
	// target, used or not, which tells a proxy without requests from one that counts none.
	Port         uint32
	Path, Unused string
	// Secure is the port of a pod that serves the same pages by mutual TLS, as the settings of its proxy say; 0 if none does. SecureHint ends
	// what is said of one that does not answer. Nil if proxies of this kind of mesh have no such port.
	Secure     func(pod *corev1.Pod) uint16
	SecureHint string
	// Cluster is what a cluster of a proxy is for. The target is zero for what is none of the mesh's services.
	Cluster func(name string) (ProxyTarget, CountSide)
	// Own reads a number that only proxies of this kind of mesh have, and that takes the place of those of their clusters; nil if there
	// are none.
	Own func(name string, label func(name string) string) OwnCount
	// Node is the pod that a proxy says it belongs to, by the ID with which it connects; false if that is no such ID. Anybody may say so.
	Node func(id string) (namespace, pod string, ok bool)
	// Counts reports whether a proxy keeps the numbers of its clusters, by what it says of its settings when it connects: the metadata of its
	// node, a google.protobuf.Struct as bytes. It is false, too, if the proxy does not say. What a proxy says is about itself only.
	Counts func(metadata []byte) bool
	// Uncounted says of the pods of a mesh in a cluster, by their namespace and labels, what their proxies do not count of the mesh's own
	// metrics. Nil if nothing can be disabled.
	Uncounted func(*Cluster) func(mesh *MeshPlan, namespace string, labels map[string]string) Uncounted
}

// Uncounted is what the proxy of a pod does not count although it counts others, because users have disabled it.
type Uncounted struct {
	// Calls are requests that the pod sends, and Serves those that it gets.
	Calls, Serves UncountedSide
	// Unread says in a clause which objects could not be read that may disable something; empty if all were read.
	Unread string
}

// UncountedSide has the objects because of which something is not counted; zero if it is.
type UncountedSide struct{ Requests, Connections Ref }

// CountSide says whose requests a number is about.
type CountSide uint8

const (
	// NotCounted numbers are of neither side.
	NotCounted CountSide = iota
	// Calls are requests that the pod sends.
	Calls
	// Serves are requests that the pod gets.
	Serves
)

// OwnCount is what a number of a mesh's own is.
type OwnCount struct {
	// Known: the number is one of the mesh's own. Others have no other field. One with Side NotCounted counts nothing.
	Known bool
	Side  CountSide
	// Target is what was called; its port is 0 if the number does not name it.
	Target  ProxyTarget
	Measure Measure
	// Failure is the reason of the failure that it counts as well, if Failed. Forbidden: it is of that, too.
	Failure           Measure
	Failed, Forbidden bool
	// Lacks is a label without which the number says nothing; such a proxy is not read. Empty if it has all.
	Lacks string
}
