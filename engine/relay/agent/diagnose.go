package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// diagnoseTimeout bounds each step of a diagnosis.
const diagnoseTimeout = 3 * time.Second

// diagnose says why the hub is not connected: what the hub has answered or, if nothing did, the first step that fails of those that a
// connection takes: DNS, TCP, TLS.
func (a *Agent) diagnose(ctx context.Context, err error) snapshot.Reason {
	// What the hub answers ends with the next step.
	answered := func(code snapshot.Code) snapshot.Reason {
		return snapshot.Reason{Code: code, What: status.Convert(err).Message()}
	}
	switch status.Code(err) { //nolint:exhaustive // the others are no answers
	case codes.Unauthenticated:
		return answered(snapshot.RelayIdentity)
	case codes.PermissionDenied:
		return answered(snapshot.RelayNotApproved)
	case codes.FailedPrecondition, codes.Unimplemented:
		return answered(snapshot.RelayVersion)
	}
	if reason, failed := a.probe(ctx); failed {
		return reason
	}
	reason := answered(snapshot.RelayAbsent)
	reason.Hint = "the agent dials again by itself; see the log of `meshctl serve`"
	return reason
}

// probe makes the steps of a connection one by one. It says nothing if all succeed.
func (a *Agent) probe(ctx context.Context) (snapshot.Reason, bool) {
	host, _, err := net.SplitHostPort(a.options.Hub)
	if err != nil {
		return snapshot.Reason{Code: snapshot.RelayUnresolved, What: fmt.Sprintf("%q is no HOST:PORT", a.options.Hub), Hint: "correct --relay-server"}, true
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: a.options.Hub}}); err == nil && proxy != nil {
		return snapshot.Reason{}, false // gRPC connects through it, and says what fails
	}
	bounded, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(bounded, host); err != nil {
		return snapshot.Reason{
			Code: snapshot.RelayUnresolved, What: "DNS: " + err.Error(), Hint: "correct --relay-server, or make the name known to the DNS of this cluster",
		}, true
	}
	bounded, cancel = context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(bounded, "tcp", a.options.Hub)
	if err != nil {
		return snapshot.Reason{
			Code: snapshot.RelayUnreachable, What: "TCP: " + err.Error(),
			Hint: "check that `meshctl serve` runs there with --relay-bind, and that firewalls and network policies let this cluster connect to it",
		}, true
	}
	defer func() { _ = conn.Close() }()
	if a.options.TLS == nil {
		return snapshot.Reason{}, false
	}
	bounded, cancel = context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	config := a.options.TLS().Clone()
	config.NextProtos = []string{"h2"}
	if err := tls.Client(conn, config).HandshakeContext(bounded); err != nil {
		hint := "check that nothing on the way ends TLS, that --relay-name is a name in the hub's certificate, and the clocks of both"
		if errors.Is(err, context.DeadlineExceeded) {
			hint = "the server takes connections and does not answer: check that the address is that of the hub, and load balancers on the way"
		}
		return snapshot.Reason{Code: snapshot.RelayNotTrusted, What: "TLS: " + err.Error(), Hint: hint}, true
	}
	return snapshot.Reason{}, false
}
