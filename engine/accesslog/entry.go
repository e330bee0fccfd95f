package accesslog

import (
	"fmt"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// Entry is one request as the proxy of a pod logged it. Its JSON is that of the log of Gloo Mesh 1.x, as far as it goes, and more.
type Entry struct {
	// WorkloadRef is the workload whose proxy logged the request, by the name of its controller.
	WorkloadRef commonv1.ClusterObjectRef `json:"workloadRef"`
	// Pod is the one whose proxy it was.
	Pod string `json:"pod,omitempty"`
	// From and To are who called whom, as NAME.NAMESPACE.CLUSTER, as far as it is known: a proxy knows the other side by its certificate
	// or by the host that was called.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Records are the AccessLogRecords that want it, ascending: as NAME.NAMESPACE, and as NAME.NAMESPACE.CLUSTER those of a registered
	// cluster.
	Records []string `json:"accessLogRecords,omitempty"`
	// HTTP is the request.
	HTTP HTTP `json:"httpAccessLog"`
}

// HTTP is a request. The names of the fields are those of Envoy's HTTPAccessLogEntry (envoy.data.accesslog.v3).
type HTTP struct {
	Common          Common   `json:"commonProperties"`
	ProtocolVersion string   `json:"protocolVersion,omitempty"`
	Request         Request  `json:"request"`
	Response        Response `json:"response"`
}

// Common are addresses, times and what became of the request.
type Common struct {
	DownstreamRemoteAddress *Address `json:"downstreamRemoteAddress,omitempty"`
	DownstreamLocalAddress  *Address `json:"downstreamLocalAddress,omitempty"`
	UpstreamRemoteAddress   *Address `json:"upstreamRemoteAddress,omitempty"`
	// PeerIdentity is the URI in the caller's certificate; empty if it had none.
	PeerIdentity string `json:"peerIdentity,omitempty"`
	// StartTime is by the clock of the proxy.
	StartTime time.Time `json:"startTime,omitzero"`
	// Took is the time until the last byte of the response was sent, in seconds, such as 0.012s; empty if none was.
	Took            string `json:"timeToLastDownstreamTxByte,omitempty"`
	UpstreamCluster string `json:"upstreamCluster,omitempty"`
	RouteName       string `json:"routeName,omitempty"`
	// Flags are Envoy's short names of what went wrong, such as UF, ascending.
	Flags                          []string `json:"flags,omitempty"`
	UpstreamTransportFailureReason string   `json:"upstreamTransportFailureReason,omitempty"`
	UpstreamRequestAttemptCount    uint64   `json:"upstreamRequestAttemptCount,omitempty"`
}

// Address is an address of IP with its port.
type Address struct {
	SocketAddress SocketAddress `json:"socketAddress"`
}

// SocketAddress is an address of IP with its port.
type SocketAddress struct {
	Address   string `json:"address"`
	PortValue uint32 `json:"portValue"`
}

// String is HOST:PORT.
func (a *Address) String() string {
	if a == nil {
		return ""
	}
	if host := a.SocketAddress.Address; strings.Contains(host, ":") {
		return fmt.Sprintf("[%s]:%d", host, a.SocketAddress.PortValue)
	}
	return fmt.Sprintf("%s:%d", a.SocketAddress.Address, a.SocketAddress.PortValue)
}

// Request is what was asked. Values in a query are redacted.
type Request struct {
	RequestMethod string `json:"requestMethod,omitempty"`
	Scheme        string `json:"scheme,omitempty"`
	Authority     string `json:"authority,omitempty"`
	Path          string `json:"path,omitempty"`
	UserAgent     string `json:"userAgent,omitempty"`
	Referer       string `json:"referer,omitempty"`
	ForwardedFor  string `json:"forwardedFor,omitempty"`
	RequestID     string `json:"requestId,omitempty"`
	OriginalPath  string `json:"originalPath,omitempty"`
	BodyBytes     uint64 `json:"requestBodyBytes,omitempty"`
	// Headers are those that records include, by name in lower case.
	Headers map[string]string `json:"requestHeaders,omitempty"`
}

// Response is what was answered.
type Response struct {
	// ResponseCode is the status; 0 if there was no response.
	ResponseCode        uint32 `json:"responseCode,omitempty"`
	BodyBytes           uint64 `json:"responseBodyBytes,omitempty"`
	ResponseCodeDetails string `json:"responseCodeDetails,omitempty"`
	// Headers and Trailers are those that records include, by name in lower case.
	Headers  map[string]string `json:"responseHeaders,omitempty"`
	Trailers map[string]string `json:"responseTrailers,omitempty"`
}

// size is about how much memory an entry takes, in bytes.
func (e *Entry) size() int {
	n := 600
	add := func(texts ...string) {
		for _, text := range texts {
			n += len(text)
		}
	}
	c, q, r := &e.HTTP.Common, &e.HTTP.Request, &e.HTTP.Response
	add(e.From, e.To, e.Pod, c.PeerIdentity, c.UpstreamCluster, c.RouteName, c.UpstreamTransportFailureReason, q.Authority, q.Path, q.UserAgent, q.Referer, q.ForwardedFor, q.RequestID, q.OriginalPath, r.ResponseCodeDetails)
	add(e.Records...)
	for _, headers := range []map[string]string{q.Headers, r.Headers, r.Trailers} {
		for name, value := range headers {
			n += 64 + len(name) + len(value)
		}
	}
	return n
}
