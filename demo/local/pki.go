package local

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/meshctl/meshctl/demo/kube"
)

// lifetime of all certificates. A demo runs for days; nothing is renewed.
const lifetime = 365 * 24 * time.Hour

// authority signs the certificates of one cluster, or of its etcd.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	// pem is the certificate.
	pem []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("authority %s: creating a key: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &authority{cert: cert, key: key, pem: pemBlock("CERTIFICATE", der)}, nil
}

// readAuthority reads an authority from PEM; its key may be PKCS #1 or #8.
func readAuthority(cert, key []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading an authority: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("reading an authority: its key cannot sign")
	}
	return &authority{cert: pair.Leaf, key: signer, pem: cert}, nil
}

// issue returns a certificate and key, both PEM, that serve on loopback and
// identify subject as a client: for Kubernetes the common name is the user, and
// the organizations are its groups.
func (a *authority) issue(subject pkix.Name) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: creating a key: %w", subject.CommonName, err)
	}
	der, err := sign(&x509.Certificate{
		Subject:     subject,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.ParseIP(loopback)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default.svc"},
	}, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", subject.CommonName, err)
	}
	key, err = keyPEM(private)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", subject.CommonName, err)
	}
	return pemBlock("CERTIFICATE", der), key, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("creating a serial number: %w", err)
	}
	template.SerialNumber = serial
	// Clocks of virtual machines may be adjusted.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return der, nil
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	return pemBlock("PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// pki are the files of one cluster's folder pki/.
type pki struct{ dir string }

func (p pki) file(name string) string { return filepath.Join(p.dir, name) }

func (p pki) write(name string, data []byte) error {
	if err := os.WriteFile(p.file(name), data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", p.file(name), err)
	}
	return nil
}

// writePair writes name.crt and name.key.
func (p pki) writePair(a *authority, name string, subject pkix.Name) error {
	cert, key, err := a.issue(subject)
	if err != nil {
		return err
	}
	if err := p.write(name+".crt", cert); err != nil {
		return err
	}
	return p.write(name+".key", key)
}

// create fills the folder: authorities, serving certificates, the key pair
// that signs service account tokens, and a kubeconfig for each client.
func (p pki) create(cluster, server string) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("creating %s: %w", p.dir, err)
	}
	// etcd has its own authority, so that no API user can access it directly.
	etcd, err := newAuthority(cluster + "-etcd")
	if err != nil {
		return err
	}
	kubernetes, err := newAuthority(cluster)
	if err != nil {
		return err
	}
	if err := p.write("etcd-ca.crt", etcd.pem); err != nil {
		return err
	}
	if err := p.write("ca.crt", kubernetes.pem); err != nil {
		return err
	}
	if err := p.writePair(etcd, "etcd", pkix.Name{CommonName: "etcd"}); err != nil {
		return err
	}
	if err := p.writePair(kubernetes, "apiserver", pkix.Name{CommonName: "kube-apiserver"}); err != nil {
		return err
	}
	if err := p.writePair(kubernetes, kubeletPair, pkix.Name{CommonName: "system:node:local", Organization: []string{"system:nodes"}}); err != nil {
		return err
	}
	if err := p.writePair(kubernetes, kubeletClientPair, pkix.Name{CommonName: kubeletClient}); err != nil {
		return err
	}
	if err := p.createServiceAccountKeys(); err != nil {
		return err
	}
	for _, c := range clients() {
		cert, key, err := kubernetes.issue(c.subject)
		if err != nil {
			return err
		}
		config := kubeconfig(cluster, c.subject.CommonName, server, kubernetes.pem, cert, key)
		if err := kube.WriteKubeconfig(p.file(c.file), config); err != nil {
			return err
		}
	}
	return nil
}

func (p pki) createServiceAccountKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	private, err := keyPEM(key)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	if err := p.write("service-account.key", private); err != nil {
		return err
	}
	return p.write("service-account.pub", pemBlock("PUBLIC KEY", public))
}
