package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestSecure: a proxy that can be read by mutual TLS is read so and in no other way, and only if it is the pod's own.
func TestSecure(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	mesh := func(of *authority) func(context.Context) (*tls.Config, error) {
		own := &tls.Config{Certificates: []tls.Certificate{of.give(t, "spiffe://cluster.local/ns/gloo-mesh/sa/agent")}, ClientCAs: ca.roots()}
		return func(context.Context) (*tls.Config, error) { return own, nil }
	}
	page := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("envoy_server_uptime{} 10\nistio_build{} 1\n"))
	}
	fails := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	for name, c := range map[string]*secureCase{
		"by mutual TLS": {variable: "15091", mesh: mesh(ca), proxy: ca.give(t, "spiffe://cluster.local/ns/a/sa/web"), answers: page, port: 15091, secure: true},
		"in a trust domain of its own": {
			variable: "15091", mesh: mesh(ca), proxy: ca.give(t, "spiffe://other/ns/a/sa/web"), answers: page, port: 15091, secure: true,
		},
		"of another pod": {
			variable: "15091", mesh: mesh(ca), proxy: ca.give(t, "spiffe://cluster.local/ns/a/sa/other"), answers: page, port: 15091, secure: true,
			detail: `its certificate has the identity "cluster.local/ns/a/sa/other", want one that ends with /ns/a/sa/web`,
		},
		"without an identity": {
			variable: "15091", mesh: mesh(ca), proxy: ca.give(t, ""), answers: page, port: 15091, secure: true,
			detail: `its certificate has the identity "", want one that ends with /ns/a/sa/web`,
		},
		"of another mesh": {
			variable: "15091", mesh: mesh(ca), proxy: other.give(t, "spiffe://cluster.local/ns/a/sa/web"), answers: page, port: 15091, secure: true,
			detail: "its certificate is of none of the mesh's roots: x509: certificate signed by unknown authority",
		},
		"the agent is of another mesh": {
			variable: "15091", mesh: mesh(other), proxy: ca.give(t, "spiffe://cluster.local/ns/a/sa/web"), answers: page, port: 15091, secure: true,
			detail: "remote error: tls: ", without: "AuthorizationPolicies",
		},
		"without TLS": {
			variable: "15091", mesh: mesh(ca), answers: page, port: 15091, secure: true,
			detail: "at port 15091, by mutual TLS: tls: first record does not look like a TLS handshake",
		},
		"its connections are intercepted": {
			variable: "15091", mesh: mesh(ca), proxy: ca.give(t, "spiffe://cluster.local/ns/a/sa/web"), answers: fails, port: 15091, secure: true,
			detail: "it answers 503 Service Unavailable; AuthorizationPolicies and PeerAuthentications hold for this port, too, unless",
		},
		"the agent gets no certificate": {
			variable: "15091", mesh: func(context.Context) (*tls.Config, error) { return nil, errors.New("istiod does not answer") }, answers: page,
			detail: "its port 15091 takes mutual TLS: istiod does not answer",
		},
		"istiod hangs": {
			variable: "15091", within: 10 * time.Millisecond, answers: page,
			mesh: func(ctx context.Context) (*tls.Config, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("istiod has not answered yet: %w", ctx.Err())
			},
			detail: "its port 15091 takes mutual TLS: istiod has not answered yet", without: "NetworkPolicy",
		},
		"the agent has no certificate": {variable: "15091", answers: page, port: 15090},
		"no such port":                 {mesh: mesh(ca), answers: page, port: 15090},
		"port 0":                       {variable: "0", mesh: mesh(ca), answers: page, port: 15090},
		"no port":                      {variable: "66000", mesh: mesh(ca), answers: page, port: 15090},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t, ca)
		})
	}
}

// secureCase is a proxy that an agent reads.
type secureCase struct {
	variable string
	mesh     func(context.Context) (*tls.Config, error)
	// proxy is the certificate of who answers, without TLS if it has none.
	proxy   tls.Certificate
	answers http.HandlerFunc
	port    uint16
	// secure: the connection is by TLS. Detail is why nothing is read.
	secure bool
	detail string
	// within is how long the reading may take; the usual time if zero.
	within time.Duration
	// without is what the detail must not have.
	without string
}

// run reads the proxy, which trusts the authority.
func (c *secureCase) run(t *testing.T, ca *authority) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
		Spec: corev1.PodSpec{ServiceAccountName: "web", Containers: []corev1.Container{{Name: "istio-proxy"}}},
	}
	if c.variable != "" {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ENVOY_SECURE_METRICS_PORT", Value: c.variable}}
	}
	server := httptest.NewUnstartedServer(c.answers)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if c.proxy.Certificate != nil {
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.proxy}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.roots()}
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	at := server.Listener.Addr().(*net.TCPAddr).AddrPort()
	l := NewLocal(LocalOptions{
		Cluster: func() *snapshot.Cluster { return nil }, Dialects: engine.Dialects(), Mesh: c.mesh,
		get: func(ctx context.Context, address netip.AddrPort, secure *tls.Config, path string, limit int64) ([]byte, error) {
			assert.Equal(t, netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), c.port), address)
			assert.Equal(t, c.secure, secure != nil)
			return kube.GetFromAddress(ctx, at, secure, path, limit)
		},
	})
	pods := traffic.LocalPods(&snapshot.Cluster{Name: "west", Pods: []*corev1.Pod{pod}}, engine.Dialects())
	require.Len(t, pods, 1)
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.within, time.Hour))
	defer cancel()
	l.proxy(ctx, &pods[0])
	got, there := l.Next()
	require.True(t, there)
	if c.detail == "" {
		assert.NotNil(t, got.Parts, got.Detail)
		return
	}
	assert.Nil(t, got.Parts)
	assert.Equal(t, traffic.Failed, got.Reason)
	assert.Contains(t, got.Detail, "pod a/web-1: ")
	assert.Contains(t, got.Detail, c.detail)
	if c.without != "" {
		assert.NotContains(t, got.Detail, c.without)
	}
}
