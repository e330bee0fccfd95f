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

	"golang.org/x/sync/singleflight"

	"github.com/meshctl/meshctl/certs/verify"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// How long a certificate for proxies is used, so that roots that were exchanged count soon, and how soon istiod is asked again after it gave none.
const pushRenew, pushAgain = 10 * time.Minute, 10 * time.Second

// pushOptions are how proxies send numbers to the agent; nil if they cannot.
func pushOptions(of *meshCertificate, o *Options, log *slog.Logger) *telemetry.PushOptions {
	if o.PushBind == "" {
		return nil
	}
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

// meshCertificate is the agent's certificate of the mesh, got when it is used first, and kept in memory only.
type meshCertificate struct {
	ask func(ctx context.Context) (*verify.Answer, error)
	now func() time.Time

	asking singleflight.Group
	mu     sync.Mutex // guards what follows
	last   *tls.Config
	// until is when the certificate ends; due is when istiod is asked again, and err why it gave none the last time.
	until, due time.Time
	err        error
}

func newMeshCertificate(client kube.Clientset, o *Options) *meshCertificate {
	looker := verify.NewLooker(verify.Options{
		Client: client, Namespace: o.IstiodNamespace, ControlPlane: map[string]string{"app": "istiod"},
		Address: o.IstiodAddress, TokenFile: o.TokenFile, ClusterID: o.ClusterID,
	})
	return &meshCertificate{ask: looker.Certificate, now: time.Now}
}

// config is for one connection of a proxy.
func (m *meshCertificate) config(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	return m.current(hello.Context())
}

// current is the certificate, with the roots of proxies as ClientCAs. What istiod gave last is used while it gives no more.
func (m *meshCertificate) current(ctx context.Context) (*tls.Config, error) {
	if m.isDue() {
		asked := m.asking.DoChan("", func() (any, error) {
			if m.isDue() { // else somebody has just asked
				m.renew(context.WithoutCancel(ctx))
			}
			return nil, nil
		})
		select {
		case <-asked:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.last != nil && m.now().Before(m.until):
		return m.last, nil
	case m.err != nil:
		return nil, m.err
	}
	return nil, fmt.Errorf("a certificate of the mesh: istiod has not answered yet: %w", context.Cause(ctx))
}

func (m *meshCertificate) isDue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.now().Before(m.due)
}

// renew asks istiod.
func (m *meshCertificate) renew(ctx context.Context) {
	answer, err := m.ask(ctx)
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.due, m.err = now.Add(pushAgain), fmt.Errorf("a certificate of the mesh: %w", err)
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
