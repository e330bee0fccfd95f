// Package serving keeps the certificate that the admission webhook shows to API servers, in a Secret of the management
// plane's namespace. Each certificate is signed by a CA made for it, whose key is thrown away: nobody can sign another one.
// One that somebody else has put there, such as cert-manager, is used as it is.
package serving

import (
	"context"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// Life is that of a certificate, and of its CA. It is renewed when a third of it is left.
	Life      = 90 * 24 * time.Hour
	renewLeft = 1.0 / 3
	backdate  = time.Hour

	organization = "meshctl webhook"
)

// Store keeps a certificate in a Secret.
type Store struct {
	// Client reaches the management cluster.
	Client kube.Clientset
	// Namespace and Name are those of the Secret.
	Namespace, Name string
	// Hosts are the DNS names by which API servers ask.
	Hosts []string
	// Now is the clock.
	Now func() time.Time
}

// Certificate is the one to show, and the CAs (PEM) that are to be trusted for it: its own, and that of the one before until
// it ends. It is made if there is none, and renewed in time.
func (s *Store) Certificate(ctx context.Context) (tls.Certificate, []byte, error) {
	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	secret, err := secrets.Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return tls.Certificate{}, nil, s.about(err)
	}
	if secret != nil {
		own, problem := pki.ReadGatewayTLS(secret.Data)
		ours := secret.Labels[snapshot.ManagedByLabel] == snapshot.ManagedBy
		switch {
		case problem != nil && !ours:
			return tls.Certificate{}, nil, s.about(problem)
		case problem == nil && (!ours || !s.due(own.Chain[0])):
			if !ours && s.Now().After(own.Chain[0].NotAfter) {
				return tls.Certificate{}, nil, s.about(errors.New("its certificate has expired; renew it, or delete the Secret to have meshctl make one"))
			}
			return shown(own)
		}
	}
	fresh, err := s.issue(s.kept(secret))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	data, err := fresh.Data()
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: map[string]string{snapshot.ManagedByLabel: snapshot.ManagedBy}}, Type: corev1.SecretTypeTLS, Data: data}
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		err = s.put(ctx, secret, data)
	}
	if err != nil {
		return tls.Certificate{}, nil, s.about(err) // somebody else was first: the next call reads what they have made
	}
	return shown(fresh)
}

func (s *Store) about(err error) error {
	return fmt.Errorf("Secret %s/%s: %w", s.Namespace, s.Name, err)
}

// due reports whether a certificate is to be replaced: little of its life is left, or it lacks a name.
func (s *Store) due(cert *x509.Certificate) bool {
	at, err := pki.RenewAt(cert, renewLeft)
	if err != nil || s.Now().After(at) {
		return true
	}
	for _, host := range s.Hosts {
		if cert.VerifyHostname(host) != nil {
			return true
		}
	}
	return false
}

// kept are the CAs of the certificate before that have not ended.
func (s *Store) kept(secret *corev1.Secret) pki.Bundle {
	if secret == nil {
		return pki.Bundle{}
	}
	before, err := pki.ReadBundle(secret.Data[pki.TLSRootKey])
	if err != nil {
		return pki.Bundle{} // nobody can trust it
	}
	var valid []*x509.Certificate
	for _, cert := range before.Certificates() {
		if s.Now().Before(cert.NotAfter) {
			valid = append(valid, cert)
		}
	}
	return pki.NewBundle(valid...)
}

// issue makes a certificate with a CA of its own.
func (s *Store) issue(before pki.Bundle) (pki.GatewayTLS, error) {
	now := s.Now()
	caKey, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	if err != nil {
		return pki.GatewayTLS{}, err
	}
	life := pki.Life{Lasts: Life, Backdate: backdate}
	ca, err := pki.NewRoot(rand.Reader, now, caKey, pki.Subject{Organization: organization, CommonName: s.Name}, life)
	if err != nil {
		return pki.GatewayTLS{}, err
	}
	key, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	if err != nil {
		return pki.GatewayTLS{}, err
	}
	text, err := pki.NewRequest(rand.Reader, key, organization, s.Hosts)
	if err != nil {
		return pki.GatewayTLS{}, err
	}
	request, err := pki.ReadRequest(text)
	if err != nil {
		return pki.GatewayTLS{}, err
	}
	issued, err := ca.SignLeaf(rand.Reader, now, request, pki.Grant{Subject: pki.Subject{Organization: organization}, Hosts: s.Hosts, Life: life})
	if err != nil {
		return pki.GatewayTLS{}, err
	}
	return pki.GatewayTLS{Chain: issued.Chain, Key: key, Roots: pki.NewBundle(ca.Chain().Root()).Union(before)}, nil
}

// put replaces the data of a Secret that is still the one that was read.
func (s *Store) put(ctx context.Context, read *corev1.Secret, data map[string][]byte) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": read.ResourceVersion}, "data": data})
	if err != nil {
		return err
	}
	_, err = s.Client.CoreV1().Secrets(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// shown is a certificate as servers show it, with the CAs that are to be trusted.
func shown(own pki.GatewayTLS) (tls.Certificate, []byte, error) {
	out := tls.Certificate{PrivateKey: own.Key, Leaf: own.Chain[0]}
	for _, cert := range own.Chain[:len(own.Chain)-1] {
		out.Certificate = append(out.Certificate, cert.Raw)
	}
	return out, own.Roots.PEM(), nil
}
