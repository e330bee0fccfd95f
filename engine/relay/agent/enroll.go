package agent

import (
	"context"
	"crypto/tls"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Enroller asks the hub at an address for certificates.
type Enroller struct {
	// Hub is HOST:PORT of the hub.
	Hub string
	// UID is that of the namespace kube-system of the agent's cluster, and Version that of the software.
	UID, Version string
}

// Enroll asks for a certificate for a token: the name of the cluster, the chain and all roots in PEM.
func (e Enroller) Enroll(ctx context.Context, config *tls.Config, token string, request []byte) (cluster string, chain, roots []byte, err error) {
	return e.ask(config, func(c relayv1.RelayClient) (*relayv1.Certificate, error) {
		return c.Enroll(ctx, &relayv1.EnrollRequest{Token: token, Request: request, ClusterUid: e.UID, Version: e.Version})
	})
}

// Renew asks for a certificate for another key, with the one that the TLS shows.
func (e Enroller) Renew(ctx context.Context, config *tls.Config, request []byte) (cluster string, chain, roots []byte, err error) {
	return e.ask(config, func(c relayv1.RelayClient) (*relayv1.Certificate, error) {
		return c.Renew(ctx, &relayv1.RenewRequest{Request: request, ClusterUid: e.UID, Version: e.Version})
	})
}

func (e Enroller) ask(config *tls.Config, ask func(relayv1.RelayClient) (*relayv1.Certificate, error)) (string, []byte, []byte, error) {
	conn, err := grpc.NewClient(e.Hub, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return "", nil, nil, fmt.Errorf("hub %s: %w", e.Hub, err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := ask(relayv1.NewRelayClient(conn))
	if err != nil {
		return "", nil, nil, fmt.Errorf("hub %s: %s", e.Hub, status.Convert(err).Message())
	}
	return answer.GetCluster(), answer.GetChain(), answer.GetRoots(), nil
}
