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

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// Timeouts after which a connection is closed. In a large cluster, the first byte
// of a list takes seconds; a watch answers at once. Pings detect a dead peer while
// watches are open.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 45 * time.Second
	pingAfter     = 10 * time.Second
	pingTimeout   = 10 * time.Second
)

// Client connects to one cluster with a Credential. Its token can be replaced
// while requests are made and informers run; nothing else can.
type Client struct {
	// Config sends the current token with each request.
	Config    *rest.Config
	transport *http.Transport
	token     *atomic.Pointer[string]
	// guard checks the server before each connection; nil if every cluster will do.
	guard *guard
}

// NewClient builds a client from known fields only: of the stored kubeconfig,
// client-go gets only what is in a Credential.
func NewClient(c *Credential, userAgent string) (*Client, error) {
	return newClient(c, userAgent, nil, nil)
}

// NewClientAt is NewClient for a server that is dialled at another address, as HOST:PORT, than the
// stored one; see Detour.
func NewClientAt(c *Credential, userAgent, address string) (*Client, error) {
	return newClient(c, userAgent, nil, func(dial dialFunc) dialFunc {
		return func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, address) }
	})
}

// newClient builds a client that connects only to clusters that accept allows, given
// the server and the UID of its kube-system, which is empty if the credential may not read
// it; nil allows all. Around changes how connections are made; nil leaves it.
func newClient(c *Credential, userAgent string, accept func(string, types.UID) error, around func(dialFunc) dialFunc) (*Client, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if len(c.CA) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, &KubeconfigError{Reason: "its certificate-authority-data holds no PEM certificates"}
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: refuseLinkLocal}
	dial := dialFunc(dialer.DialContext)
	if around != nil {
		dial = around(dial)
	}
	transport := newTransport(tlsConfig, dial)
	upgrading := newUpgradingTransport(tlsConfig, func(ctx context.Context, network, address string) (net.Conn, error) {
		return transport.DialContext(ctx, network, address)
	})
	token := &atomic.Pointer[string]{}
	token.Store(&c.Token)
	client := &Client{
		transport: transport,
		token:     token,
		Config: &rest.Config{
			Host: c.Server,
			Transport: &bearer{
				token: token, base: kube.Metered(kube.RefuseRedirects(transport), c.Server, kube.NewBudget(kube.Bounds{})),
				upgrading: kube.RefuseRedirects(upgrading),
			},
			UserAgent: userAgent,
			// The priority and fairness of the API server limits requests.
			QPS: -1,
			// Serve cannot act on deprecation warnings.
			WarningHandler: rest.NoWarnings{},
		},
	}
	if accept == nil {
		return client, nil
	}
	asking := newTransport(tlsConfig.Clone(), dial)
	asking.DisableKeepAlives = true
	var err error
	few := kube.NewBudget(kube.Bounds{Answers: maxIdentity, Pause: time.Second})
	client.guard, err = newGuard(c.Server, userAgent, &bearer{token: token, base: kube.Metered(kube.RefuseRedirects(asking), c.Server, few)}, accept)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := client.guard.check(ctx); err != nil {
			return nil, err
		}
		return dial(ctx, network, address)
	}
	return client, err
}

func newTransport(tlsConfig *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

// newUpgradingTransport dials as another transport does, for requests that turn a connection into another one. HTTP/2 has no such.
func newUpgradingTransport(tlsConfig *tls.Config, dial dialFunc) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSClientConfig: tlsConfig.Clone(),
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: headerTimeout, DisableKeepAlives: true,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// setToken makes every later request send the new token.
func (c *Client) setToken(token string) { c.token.Store(&token) }

// Close drops idle connections; those in use end with their requests.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// bearer sends the current token with every request.
type bearer struct {
	token *atomic.Pointer[string]
	base  http.RoundTripper
	// upgrading is below Upgrading; nil without it.
	upgrading http.RoundTripper
}

// Upgrading implements kube.Upgrading.
func (b *bearer) Upgrading() http.RoundTripper {
	return &bearer{token: b.token, base: b.upgrading}
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+*b.token.Load())
	return b.base.RoundTrip(request) // a RoundTripper returns the error of the transport
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.base }

// refuseLinkLocal checks addresses after names are resolved: a stored kubeconfig
// must not reach the metadata services of clouds.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err == nil && forbiddenAddr(addr.Addr().Unmap()) {
		return fmt.Errorf("%s is a link-local address, at which no API server is expected", addr.Addr())
	}
	return nil
}

// Handshake connects as a Client does, and verifies the certificate of the server.
// It sends no credential, and accepts any answer.
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
