package vault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/vault/api"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

const (
	// requestTimeout bounds one request, and dialTimeout the time until there is a connection.
	requestTimeout = 15 * time.Second
	dialTimeout    = 5 * time.Second
	// maxAnswer is in bytes. A chain of eight certificates of RSA 4096 has 20 KiB, and is sent twice.
	maxAnswer = 256 << 10
)

// Client talks to one Vault. It is for one attempt: New, a call or two, Close.
type Client struct {
	api       *api.Client
	transport *http.Transport
	server    string
	path      path
	// secrets are tokens, which a server may quote and nobody may read.
	secrets []string
	// revoke: the token was made by a login, and is not needed after Close.
	revoke bool
}

// New prepares a Client. It does no I/O. The error is a sentence about a field of the VaultCA.
func New(ca *certificatesv1.VaultCA) (*Client, error) {
	at, err := parsePath(ca.CaPath)
	if err != nil {
		return nil, err
	}
	server, err := ParseServer(ca.Server)
	if err != nil {
		return nil, err
	}
	roots, err := bundle(ca.CaBundle)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, ForceAttemptHTTP2: true,
	}
	client, err := api.NewClient(&api.Config{
		Address: server, Timeout: requestTimeout, MaxRetries: 0, DisableRedirects: true,
		HttpClient: &http.Client{Transport: bounded{transport}},
	})
	if err != nil { // the environment has a header for Vault that cannot be read
		return nil, fmt.Errorf("the client for Vault cannot be made: %w; correct the variable of the environment", err)
	}
	client.ClearToken()
	client.SetHeaders(http.Header{api.RequestHeaderName: {"true"}})
	if ca.Namespace != "" {
		client.SetNamespace(ca.Namespace)
	}
	return &Client{api: client, transport: transport, server: server, path: at}, nil
}

// bundle are the roots of caBundle; nil, which are those of the system, if it is empty.
func bundle(text []byte) (*x509.CertPool, error) {
	if len(text) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("caBundle has no certificate; set it to the certificates in PEM of the CA that signed Vault's own certificate, in base64")
	}
	return pool, nil
}

// String is what messages call this Vault.
func (c *Client) String() string { return "Vault " + c.server }

// bounded refuses answers that send the client elsewhere, and those that are too large.
type bounded struct{ base http.RoundTripper }

// redirectError is an answer that names another address.
type redirectError struct{ to string }

func (e *redirectError) Error() string { return "redirects to " + e.to }

var errTooLarge = fmt.Errorf("answers with more than %d KiB", maxAnswer>>10)

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest {
		_ = response.Body.Close()
		to := "another address"
		if at, err := response.Location(); err == nil {
			to = fmt.Sprintf("%.120q", at.Scheme+"://"+at.Host)
		}
		return nil, &redirectError{to}
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: maxAnswer}
	return response, nil
}

// boundedBody fails, where io.LimitReader would end as if the answer were complete.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLarge
	}
	return n, err //nolint:wrapcheck // a reader
}
