package verify

import (
	"context"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	securityv1alpha1 "istio.io/api/security/v1alpha1"

	"github.com/meshctl/meshctl/certs/pki"
)

// Bounds of a question.
const (
	askTimeout = 10 * time.Second
	maxAnswer  = 1 << 20 // bytes
	// maxCertificates of an answer, each at most as long as pki reads.
	maxCertificates = 32
	maxToken        = 64 << 10 // bytes
	// certificateLife is how long the certificate lives; it is used at once, and thrown away.
	certificateLife = time.Hour
)

// requester is the identity that the request has; istiod takes the one in the token.
const requester = "spiffe://cluster.local/ns/gloo-mesh/sa/meshctl"

// Server is an istiod.
type Server struct {
	// Address is host:port of its secure gRPC port.
	Address string
	// Names of which one must be in its certificate.
	Names []string
	// Roots that it may have its own certificate from.
	Roots pki.Bundle
	// TokenFile has a token of a ServiceAccount with audience istio-ca. It is read on each call, because it is renewed.
	TokenFile string
	// ClusterID is the name under which istiod knows the token's cluster (CLUSTER_ID of istiod).
	ClusterID string
}

// Answer is what an istiod signs and hands out.
type Answer struct {
	// Chain is that of the certificate it gave, with its root.
	Chain pki.Chain
	// Root and Signer are the fingerprints of the chain's root, and of the certificate that signed the first.
	Root, Signer string
	// Bundle are the roots that workloads get, BundlePEM its text, and FirstRoot the fingerprint of the first in the text.
	Bundle    pki.Bundle
	BundlePEM []byte
	FirstRoot string

	certificate tls.Certificate
}

// Ask gets a certificate from an istiod, as a sidecar does (CreateCertificate of security/pkg/server/ca in Istio). The key
// is thrown away with the Answer. Its errors say what to do.
func Ask(ctx context.Context, now time.Time, s Server) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	token, err := readToken(s.TokenFile)
	if err != nil {
		return nil, err
	}
	key, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	if err != nil {
		return nil, err
	}
	csr, err := pki.NewRequest(rand.Reader, key, "meshctl", []string{requester})
	if err != nil {
		return nil, err
	}
	// The library reports a failed handshake only as text.
	var refused error
	conn, err := grpc.NewClient("passthrough:///"+s.Address, grpc.WithTransportCredentials(s.credentials(now, &refused)), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithContextDialer(dial))
	if err != nil {
		return nil, fmt.Errorf("istiod %s: %w; check the address", s.Address, err)
	}
	defer func() { _ = conn.Close() }()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token, "clusterid", s.ClusterID)
	response, err := securityv1alpha1.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, &securityv1alpha1.IstioCertificateRequest{
		Csr: string(csr), ValidityDuration: int64(certificateLife / time.Second),
	})
	if err != nil {
		return nil, s.explain(err, refused)
	}
	answer, err := readAnswer(response.GetCertChain(), now, key)
	if err != nil {
		return nil, fmt.Errorf("istiod %s: its answer: %w", s.Address, err)
	}
	return answer, nil
}

// Certificate is the certificate with its key.
func (a *Answer) Certificate() tls.Certificate { return a.certificate }

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

func readToken(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("token for istiod: %w; mount a projected ServiceAccount token with audience istio-ca there", err)
	}
	if info.Size() > maxToken {
		return "", fmt.Errorf("token for istiod: %s has %d bytes, more than a token; mount a projected ServiceAccount token with audience istio-ca there", file, info.Size())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token for istiod: %w; make the file readable", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("token for istiod: %s is empty; mount a projected ServiceAccount token with audience istio-ca there", file)
	}
	return token, nil
}

// credentials verify istiod's certificate with package pki, whose errors name the roots on both sides.
func (s *Server) credentials(now time.Time, refused *error) credentials.TransportCredentials {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies
		VerifyConnection: func(state tls.ConnectionState) error {
			*refused = pki.Verify(state.PeerCertificates, s.Roots, now, pki.Want{Hosts: s.Names})
			return *refused
		},
	}
	if len(s.Names) > 0 {
		config.ServerName = s.Names[0]
	}
	return credentials.NewTLS(config)
}

// explain says what to do about a failed call.
func (s *Server) explain(err, refused error) error {
	code := status.Code(err)
	object := "istiod " + s.Address
	switch {
	case refused != nil && pki.ReasonOf(refused) == pki.UnknownRoot:
		return fmt.Errorf("%s: %w; it may not have written its root to the ConfigMap %s yet, or is not the istiod of this mesh", object, refused, RootConfigMap)
	case refused != nil:
		return fmt.Errorf("%s: %w", object, refused)
	case code == codes.Unauthenticated:
		return fmt.Errorf("%s refused the token in %s: %w; it must be of a ServiceAccount of the cluster that istiod knows as %q, with audience istio-ca, and not expired", object, s.TokenFile, err, s.ClusterID)
	case isRefused(err):
		return &downError{fmt.Errorf("%s: nothing listens there: %w; check that its pod is ready", object, err)}
	case code == codes.DeadlineExceeded || code == codes.Unavailable:
		return fmt.Errorf("%s did not answer within %s: %w; check that NetworkPolicies let the agent connect to this port", object, askTimeout, err)
	case code == codes.ResourceExhausted:
		return fmt.Errorf("%s: its answer is too long: %w; remove roots that are no longer needed", object, err)
	}
	return fmt.Errorf("%s did not sign: %w; its log says why", object, err)
}

// downError: nothing listens at an address.
type downError struct{ error }

func (e *downError) Unwrap() error { return e.error }

// isRefused: the library reports failed connections only as text.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), syscall.ECONNREFUSED.Error())
}

// readAnswer reads the certificates: the first is the one asked for, the last all roots that are handed out.
func readAnswer(texts []string, now time.Time, key pki.Key) (*Answer, error) {
	if len(texts) < 2 || len(texts) > maxCertificates {
		return nil, fmt.Errorf("has %d parts; expected a certificate, those above it, and the roots: check that this is an istiod", len(texts))
	}
	var certs []*x509.Certificate
	for _, text := range texts[:len(texts)-1] {
		more, err := pki.ReadCertificates([]byte(text))
		if err != nil {
			return nil, err
		}
		certs = append(certs, more...)
	}
	last := []byte(texts[len(texts)-1])
	roots, err := pki.ReadCertificates(last)
	if err != nil {
		return nil, err
	}
	bundle := pki.NewBundle(roots...)
	chain, err := pki.NewChain(certs[0], append(certs[1:], roots...)...)
	if err != nil {
		return nil, err
	}
	if err := pki.Verify(chain, bundle, now, pki.Want{Usage: pki.ForWorkload, Key: key}); err != nil {
		return nil, err
	}
	a := &Answer{
		Chain: chain, Root: pki.Fingerprint(chain.Root()), Signer: pki.Fingerprint(chain[min(1, len(chain)-1)]),
		Bundle: bundle, BundlePEM: last, FirstRoot: pki.Fingerprint(roots[0]),
	}
	a.certificate = tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, cert := range chain[:max(1, len(chain)-1)] { // whoever verifies it has the root
		a.certificate.Certificate = append(a.certificate.Certificate, cert.Raw)
	}
	return a, nil
}
