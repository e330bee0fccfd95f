package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// How long a server may stay silent before the connection is given up. A list
// of everything in a large cluster takes seconds until its first byte; a
// watch answers at once. Pings notice a dead peer under open watches.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 45 * time.Second
	pingAfter     = 10 * time.Second
	pingTimeout   = 10 * time.Second
)

// Client connects to one cluster with a Credential. Its token can be replaced
// while requests are made and informers run; nothing else can.
type Client struct {
	// Config shows the current token with each request.
	Config    *rest.Config
	transport *http.Transport
	token     *atomic.Pointer[string]
}

// NewClient builds a client from known fields only: nothing of the stored
// kubeconfig reaches client-go but what a Credential has.
func NewClient(c *Credential, userAgent string) (*Client, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if len(c.CA) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, &KubeconfigError{Reason: "its certificate-authority-data holds no PEM certificates"}
		}
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: refuseLinkLocal}).DialContext,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	token := &atomic.Pointer[string]{}
	token.Store(&c.Token)
	return &Client{
		transport: transport,
		token:     token,
		Config: &rest.Config{
			Host:      c.Server,
			Transport: &bearer{token: token, base: transport},
			UserAgent: userAgent,
			// The API server's own fairness rules limit us, not the client.
			QPS: -1,
			// Deprecations on clusters of others are nothing that serve can act on.
			WarningHandler: rest.NoWarnings{},
		},
	}, nil
}

// setToken makes every later request show the new token.
func (c *Client) setToken(token string) { c.token.Store(&token) }

// Close drops idle connections; those in use end with their requests.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// bearer shows the current token with every request.
type bearer struct {
	token *atomic.Pointer[string]
	base  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+*b.token.Load())
	return b.base.RoundTrip(request) // a RoundTripper hands on what the transport says
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.base }

// refuseLinkLocal looks at addresses after names are resolved: a stored
// kubeconfig must not reach the metadata services of clouds.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err == nil && forbiddenAddr(addr.Addr().Unmap()) {
		return fmt.Errorf("%s is a link-local address, at which no API server is expected", addr.Addr())
	}
	return nil
}

// Handshake connects as a Client does, and verifies
// the server's certificate. It shows no credential: any answer will do.
func Handshake(ctx context.Context, c *Credential) error {
	client, err := NewClient(c, "")
	if err != nil {
		return err
	}
	defer client.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/version", http.NoBody)
	if err != nil {
		return fmt.Errorf("server %s: %w", c.Server, err)
	}
	response, err := client.transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}
