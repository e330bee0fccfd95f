package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/meshctl/meshctl/certs/verify"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// How long a certificate for proxies is used, so that roots that were exchanged count soon, and how soon istiod is asked again after it gave none.
const pushRenew, pushAgain = 10 * time.Minute, 10 * time.Second

// pushOptions are how proxies send numbers to the agent; nil if they cannot.
func pushOptions(client kube.Clientset, o *Options, log *slog.Logger) *telemetry.PushOptions {
	if o.PushBind == "" {
		return nil
	}
	looker := verify.NewLooker(verify.Options{
		Client: client, Namespace: o.IstiodNamespace, ControlPlane: map[string]string{"app": "istiod"},
		Address: o.IstiodAddress, TokenFile: o.TokenFile, ClusterID: o.ClusterID,
	})
	of := &meshCertificate{ask: looker.Certificate, now: time.Now}
	return &telemetry.PushOptions{
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: of.config}, Log: log,
		Listen: func(ctx context.Context) (net.Listener, error) {
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.PushBind)
			if err != nil {
				return nil, fmt.Errorf("listening for proxies: %w; choose another address with --push-bind", err)
			}
			return listener, nil
		},
	}
}

// meshCertificate is the agent's certificate of the mesh, got when the first proxy connects, and kept in memory only.
type meshCertificate struct {
	ask func(ctx context.Context) (*verify.Answer, error)
	now func() time.Time

	mu   sync.Mutex // guards what follows
	last *tls.Config
	// until is when the certificate ends; due is when istiod is asked again, and err why it gave none the last time.
	until, due time.Time
	err        error
}

// config is for one connection. What istiod gave last is used while it gives no more.
func (m *meshCertificate) config(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if !now.Before(m.due) {
		m.renew(hello.Context(), now)
	}
	if m.last == nil || !now.Before(m.until) {
		return nil, m.err
	}
	return m.last, nil
}

// renew asks istiod, under the lock.
func (m *meshCertificate) renew(ctx context.Context, now time.Time) {
	answer, err := m.ask(ctx)
	if err != nil {
		m.due, m.err = now.Add(pushAgain), fmt.Errorf("a certificate for the port of proxies: %w", err)
		return
	}
	roots := x509.NewCertPool()
	for _, cert := range answer.Bundle.Certificates() {
		roots.AddCert(cert)
	}
	certificate := answer.Certificate()
	m.last = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientCAs: roots}
	m.until = certificate.Leaf.NotAfter
	m.due, m.err = now.Add(min(pushRenew, m.until.Sub(now)/2)), nil
}
