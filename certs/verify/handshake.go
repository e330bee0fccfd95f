package verify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
)

// greetTimeout bounds a handshake, and refusalTimeout the wait for a refusal after one of TLS 1.3.
const (
	greetTimeout   = 2 * time.Second
	refusalTimeout = 500 * time.Millisecond
)

// alpn has Envoy take a connection for one of a sidecar also where it permits plain text (pilot/pkg/networking/core,
// filterchain_options.go).
var alpn = []string{"istio", "istio-peer-exchange"}

// Errors of a handshake that shows nothing.
var (
	errNoMutualTLS = errors.New("asks for no certificate: no sidecar answers there, or without mutual TLS")
	errElse        = errors.New("presents a certificate that is not the workload's: something else answers there")
)

// Target is the workload of a handshake.
type Target struct {
	// Address is host:port.
	Address string
	// Namespace and ServiceAccount of the workload, which are in its certificate.
	Namespace, ServiceAccount string
}

// is reports whether a certificate is that of the target's sidecar, and not of an application that has its own.
func (t *Target) is(cert *x509.Certificate) bool {
	return slices.ContainsFunc(cert.URIs, func(u *url.URL) bool {
		return u.Scheme == "spiffe" && u.Path == "/ns/"+t.Namespace+"/sa/"+t.ServiceAccount
	})
}

// Greet makes a TLS handshake with a workload, with the certificate of an Answer, and hangs up. Known are the roots that
// its own certificate may have. An error says that nothing was seen.
//
// It offers TLS 1.2 first. There the server judges the client's certificate before the handshake ends, so that the outcome
// is clear. In TLS 1.3 the client is done first, and a refusal comes later: then only a message that the server sends
// after its own end of the handshake says that it accepted; that nothing comes says nothing. Envoy sends nothing; the names
// of the roots that it trusts are seen all the same.
func Greet(ctx context.Context, to Target, a *Answer, known pki.Bundle) (*Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	seen, err := greet(ctx, to, a, known, tls.VersionTLS12)
	if err != nil && strings.Contains(err.Error(), "protocol version") {
		return greet(ctx, to, a, known, tls.VersionTLS13)
	}
	return seen, err
}

func greet(ctx context.Context, to Target, a *Answer, known pki.Bundle, version uint16) (*Seen, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	h := &handshake{seen: &Seen{Client: a.Root}, certificate: &a.certificate}
	client := tls.Client(conn, h.config(version))
	err = client.HandshakeContext(ctx)
	if len(h.chain) == 0 {
		return nil, errors.Join(err, errNoMutualTLS)
	}
	if !h.asked {
		return nil, errNoMutualTLS
	}
	if !to.is(h.chain[0]) {
		return nil, errElse
	}
	h.seen.Presents = rootOf(h.chain, known)
	switch {
	case err != nil:
		h.seen.Accepts = refusal(err)
	case version == tls.VersionTLS12:
		h.seen.Accepts = Accepted
	default:
		h.seen.Accepts = h.later(client)
	}
	return h.seen, nil
}

// handshake is one under way.
type handshake struct {
	seen        *Seen
	certificate *tls.Certificate
	chain       []*x509.Certificate
	asked       bool
	ticket      bool
}

func (h *handshake) config(version uint16) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, MaxVersion: version, NextProtos: alpn,
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent: the certificate is what is asked for
		VerifyConnection: func(state tls.ConnectionState) error {
			h.chain = state.PeerCertificates
			return nil
		},
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			h.asked = true
			for _, name := range request.AcceptableCAs {
				h.seen.Names = append(h.seen.Names, string(name))
			}
			return h.certificate, nil
		},
		ClientSessionCache: h,
	}
}

// Get and Put make a tls.ClientSessionCache, which receives tickets: a server sends them when it has verified the client.
func (h *handshake) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

// Put is described at Get.
func (h *handshake) Put(string, *tls.ClientSessionState) { h.ticket = true }

// later waits for what the server says after the client's end of a handshake of TLS 1.3.
func (h *handshake) later(client *tls.Conn) Verdict {
	if err := client.SetReadDeadline(time.Now().Add(refusalTimeout)); err != nil {
		return Undecided
	}
	n, err := client.Read(make([]byte, 1))
	if n > 0 || h.ticket {
		return Accepted
	}
	return refusal(err)
}

// refusal tells an alert about the certificate from other ends of a connection.
func refusal(err error) Verdict {
	var alert tls.AlertError
	var op *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, os.ErrDeadlineExceeded):
		return Undecided
	case errors.As(err, &op) && op.Op == "remote error", errors.As(err, &alert):
		for _, about := range []string{"certificate", "access denied"} {
			if strings.Contains(err.Error(), about) {
				return Refused
			}
		}
	}
	return Undecided
}
