package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// diagnose says why the hub is not connected: what the hub has answered or, if nothing did, the first step that fails of those that a
// connection takes: DNS, TCP, TLS.
func (a *Agent) diagnose(ctx context.Context, err error) snapshot.Reason {
	// What the hub answers ends with the next step.
	answered := func(code snapshot.Code) snapshot.Reason {
		return snapshot.Reason{Code: code, What: status.Convert(err).Message()}
	}
	switch status.Code(err) { //nolint:exhaustive // the others are no answers
	case codes.Unauthenticated, codes.AlreadyExists: // another one speaks for the cluster
		return answered(snapshot.RelayIdentity)
	case codes.PermissionDenied:
		return answered(snapshot.RelayNotApproved)
	case codes.FailedPrecondition, codes.Unimplemented:
		return answered(snapshot.RelayVersion)
	}
	if reason, failed := a.probe(ctx); failed {
		return reason
	}
	if times, _, at := a.stands.Count(time.Now()); times >= pump.StuckAfter {
		return snapshot.RelayStandstill("the hub takes nothing of what is reported", times, pump.StuckWithin, at)
	}
	reason := answered(snapshot.RelayAbsent)
	reason.Hint = "the agent dials again by itself; see the log of `meshctl serve`"
	return reason
}

// probe makes the steps of a connection one by one. It says nothing if all succeed.
func (a *Agent) probe(ctx context.Context) (snapshot.Reason, bool) {
	var config *tls.Config
	if a.options.TLS != nil {
		config = a.options.TLS()
	}
	code, err := relay.Reach(ctx, a.options.Hub, config)
	if err == nil {
		return snapshot.Reason{}, false
	}
	hint := "correct --relay-server, or make the name known to the DNS of this cluster"
	switch {
	case code == snapshot.RelayUnreachable:
		hint = "check that `meshctl serve` runs there with --relay-bind, and that firewalls and network policies let this cluster connect to it"
	case code == snapshot.RelayNotTrusted && errors.Is(err, context.DeadlineExceeded):
		hint = "the server takes connections and does not answer: check that the address is that of the hub, and load balancers on the way"
	case code == snapshot.RelayNotTrusted:
		hint = "check that nothing on the way ends TLS, that --relay-name is a name in the hub's certificate, and the clocks of both"
	}
	return snapshot.Reason{Code: code, What: err.Error(), Hint: hint}, true
}
