package check

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// relayFrom tries from here what the agents of clusters do. It is nil if an agent is connected, which proves more, and if no agent is away.
func relayFrom(ctx context.Context, clusters []explain.CheckedCluster, o Options) *explain.CheckedRelay {
	in := func(states ...multiclusterv1alpha1.ConnectionState) bool {
		return slices.ContainsFunc(clusters, func(c explain.CheckedCluster) bool {
			return c.Connection != nil && slices.Contains(states, c.Connection.State)
		})
	}
	if !in(multiclusterv1alpha1.ConnectionStateAwaited, multiclusterv1alpha1.ConnectionStateLost) || in(multiclusterv1alpha1.ConnectionStateConnected) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	address, err := registration.RelayAddress(bounded, o.Config, o.Namespace, o.Timeout)
	if err != nil {
		return &explain.CheckedRelay{Untried: kube.Text(err)}
	}
	found := &explain.CheckedRelay{Address: address}
	if found.Failed, err = relay.Reach(ctx, address, relayTLS(snapshot.RelayServerName(o.Namespace))); err != nil {
		found.What = err.Error()
	}
	return found
}

// relayTLS finds out whether a server is a hub of this name. Whether it is the right one is not asked: nothing is sent to it.
func relayTLS(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: name,
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("the server has shown no certificate")
			}
			return state.PeerCertificates[0].VerifyHostname(name)
		},
	}
}
