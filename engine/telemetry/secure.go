package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/meshctl/meshctl/engine/traffic"
)

// statsPort is where a proxy is read.
type statsPort struct {
	number uint16
	// secure is how the connection is secured; nil if it is not.
	secure *tls.Config
	// another: whoever answered there is not the pod.
	another atomic.Bool
	// hint is what may be in the way of the pod's answer.
	hint string
}

// portOf is the port at which a proxy is read. Where a proxy can be read by mutual TLS, it is not read without: the other port is then often
// closed, and whoever can end the one kind of connection must not get the other.
func (l *Local) portOf(ctx context.Context, pod *traffic.LocalPod) (*statsPort, error) {
	if pod.Secure == 0 || l.options.Mesh == nil {
		return &statsPort{number: uint16(pod.Stats.Port)}, nil
	}
	own, err := l.options.Mesh(ctx)
	if err != nil {
		return nil, fmt.Errorf("its port %d takes mutual TLS: %w", pod.Secure, err)
	}
	at := &statsPort{number: pod.Secure, hint: pod.Stats.SecureHint}
	at.secure = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: own.Certificates,
		InsecureSkipVerify: true, //nolint:gosec // certificates of a mesh name no host; VerifyConnection verifies
		VerifyConnection: func(state tls.ConnectionState) error {
			err := verify(state, own.ClientCAs, pod)
			at.another.Store(err != nil)
			return err
		},
	}
	return at, nil
}

// verify says why the other end of a connection is not the proxy of a pod: it has to have a certificate of the mesh's roots for the pod's
// ServiceAccount.
func verify(state tls.ConnectionState, roots *x509.CertPool, pod *traffic.LocalPod) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("it has no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	chains, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return fmt.Errorf("its certificate is of none of the mesh's roots: %w", err)
	}
	return isOf(pod, chains)
}

// explain adds to why a proxy was not read at the port what may be in the way.
func (at *statsPort) explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s; a NetworkPolicy has to let the agent reach port %d", maxTime, at.number)
	}
	if at.secure == nil {
		return err
	}
	// A connection that was not made, and an alert of TLS, say by themselves what is wrong (crypto/tls calls what it is sent a "remote error").
	var network *net.OpError
	plain := errors.As(err, &network) && (network.Op == "dial" || network.Op == "remote error")
	if at.hint == "" || plain || at.another.Load() {
		return fmt.Errorf("at port %d, by mutual TLS: %w", at.number, err)
	}
	return fmt.Errorf("at port %d, by mutual TLS: %w; %s", at.number, err, at.hint)
}
