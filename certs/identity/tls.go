package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
)

// Own is what one side shows, and whom it trusts.
type Own struct {
	// Chain is empty for an agent without a certificate.
	Chain pki.Chain
	Key   pki.Key
	Roots pki.Bundle
}

func (o Own) certificate() *tls.Certificate {
	c := &tls.Certificate{PrivateKey: o.Key}
	for _, cert := range o.Chain {
		c.Certificate = append(c.Certificate, cert.Raw)
	}
	return c
}

// HubTLS is the TLS of the hub, which shows what it has at the time of a connection. It asks for a certificate and takes any: what a caller
// may do depends on the call (AgentOf).
func HubTLS(own func() (Own, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			o, err := own()
			if err != nil {
				return nil, err
			}
			return o.certificate(), nil
		},
	}
}

// AgentOf is the cluster whose agent has shown a chain. One that expired not longer ago than tolerance is taken.
func AgentOf(shown []*x509.Certificate, roots pki.Bundle, plane string, now time.Time, tolerance time.Duration) (string, error) {
	if len(shown) == 0 {
		return "", errors.New("the agent has shown no certificate: give it a token, or a certificate of the user's own PKI")
	}
	chain, err := pki.NewChain(shown[0], append(slices.Clone(shown[1:]), roots.Certificates()...)...)
	if err != nil {
		return "", err
	}
	at := now
	if end := shown[0].NotAfter; end.Before(now) && now.Sub(end) <= tolerance {
		at = end
	}
	if err := pki.Verify(chain, roots, at, pki.Want{Usage: pki.ForWorkload}); err != nil {
		return "", err
	}
	return ClusterOf(shown[0], plane)
}

// AgentTLS is the TLS of an agent that has a root of the hub. Name is that of the server by which gateways on the way find it.
func AgentTLS(own func() (Own, error), name, plane string, now func() time.Time) *tls.Config {
	return agentTLS(own, name, func(shown []*x509.Certificate) error {
		o, err := own()
		if err != nil {
			return err
		}
		chain, err := pki.NewChain(shown[0], append(slices.Clone(shown[1:]), o.Roots.Certificates()...)...)
		if err != nil {
			return err
		}
		return pki.Verify(chain, o.Roots, now(), pki.Want{Usage: pki.ForWorkload, Hosts: hubHosts(chain[0], plane)})
	})
}

// hubHosts are the names that a certificate of the hub must have.
func hubHosts(cert *x509.Certificate, plane string) []string {
	if len(cert.URIs) == 0 {
		return nil // one of the user's own PKI, of which crypto/tls checks the DNS name
	}
	return []string{HubName(plane)}
}

// EnrollTLS is the TLS of an agent that has only a token: the server must show the root that the token names.
func EnrollTLS(t Token, name string, now func() time.Time) *tls.Config {
	return agentTLS(func() (Own, error) { return Own{}, nil }, name, func(shown []*x509.Certificate) error {
		chain, err := pki.NewChain(shown[0], shown[1:]...)
		if err != nil {
			return err
		}
		root := chain.Root()
		if sha256.Sum256(root.Raw) != t.Root {
			return errors.New("the server is not the hub that the token is for: its root certificate is another. Nothing was sent to it; check the address, and whether something on the way ends TLS")
		}
		return pki.Verify(chain, pki.NewBundle(root), now(), pki.Want{Usage: pki.ForWorkload})
	})
}

func agentTLS(own func() (Own, error), name string, verify func([]*x509.Certificate) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: name,
		// crypto/tls knows no SPIFFE identities. VerifyConnection does all that it would, and is called for resumed connections, too.
		InsecureSkipVerify: true, //nolint:gosec // see above
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			o, err := own()
			if err != nil {
				return nil, err
			}
			return o.certificate(), nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			shown := state.PeerCertificates
			if len(shown) == 0 {
				return errors.New("the hub has shown no certificate")
			}
			if err := shown[0].VerifyHostname(name); err != nil {
				return err
			}
			return verify(shown)
		},
	}
}
