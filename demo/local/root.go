package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Root is a root certificate that the meshes of several clusters share. Its key is
// only in memory.
type Root struct{ authority *authority }

// NewRoot creates a root.
func NewRoot(name string) (*Root, error) {
	authority, err := newAuthority(name)
	if err != nil {
		return nil, err
	}
	return &Root{authority}, nil
}

// write creates an authority for a cluster, signed by the root, as the files that
// istiod reads at its start. See
// https://istio.io/latest/docs/tasks/security/cert-management/plugin-ca-cert/.
func (r *Root) write(dir, cluster string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("authority of Istio in %s: creating a key: %w", cluster, err)
	}
	der, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "Istio in " + cluster}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, r.authority.cert, key.Public(), r.authority.key)
	if err != nil {
		return fmt.Errorf("authority of Istio in %s: %w", cluster, err)
	}
	private, err := keyPEM(key)
	if err != nil {
		return fmt.Errorf("authority of Istio in %s: %w", cluster, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("authority of Istio in %s: %w", cluster, err)
	}
	cert := pemBlock("CERTIFICATE", der)
	for name, data := range map[string][]byte{
		"ca-cert.pem": cert, "ca-key.pem": private, "cert-chain.pem": slices.Concat(cert, r.authority.pem), "root-cert.pem": r.authority.pem,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("authority of Istio in %s: %w", cluster, err)
		}
	}
	return nil
}
