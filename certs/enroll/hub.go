package enroll

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Root is the root of the relay, made if there is none; and what signs with it, nil if its key is not there because a user's own PKI signs.
func (s *Store) Root(ctx context.Context) (pki.Bundle, *pki.Authority, error) {
	data, err := s.data(ctx, RootSecret)
	if err != nil {
		return pki.Bundle{}, nil, err
	}
	if data == nil {
		if data, err = s.makeRoot(ctx); err != nil {
			return pki.Bundle{}, nil, err
		}
	}
	roots, err := pki.ReadBundle(data[pki.TLSRootKey])
	if err != nil {
		return pki.Bundle{}, nil, s.about(RootSecret, err)
	}
	if len(data[pki.TLSKeyKey]) == 0 {
		return roots, nil, nil
	}
	authority, err := pki.ReadAuthority(data)
	if err != nil {
		return pki.Bundle{}, nil, s.about(RootSecret, err)
	}
	return roots, authority, nil
}

func (s *Store) about(name string, err error) error {
	return fmt.Errorf("Secret %s/%s: %w", s.Namespace, name, err)
}

// secret is a Secret; nil if there is none.
func (s *Store) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, s.about(name, err)
	}
	return secret, nil
}

// data is that of a Secret; nil if there is none.
func (s *Store) data(ctx context.Context, name string) (map[string][]byte, error) {
	secret, err := s.secret(ctx, name)
	if secret == nil {
		return nil, err
	}
	return secret.Data, nil
}

func (s *Store) makeRoot(ctx context.Context) (map[string][]byte, error) {
	root, err := identity.NewRoot(rand.Reader, s.Now(), s.Plane)
	if err != nil {
		return nil, err
	}
	data, err := root.RootSecret()
	if err != nil {
		return nil, err
	}
	cert := data[pki.RootCertKey]
	return s.create(ctx, RootSecret, map[string][]byte{pki.TLSCertKey: cert, pki.TLSKeyKey: data[pki.RootKeyKey], pki.TLSRootKey: cert})
}

// create makes a Secret, or returns the data of the one that somebody else made meanwhile.
func (s *Store) create(ctx context.Context, name string, data map[string][]byte) (map[string][]byte, error) {
	_, err := s.Client.CoreV1().Secrets(s.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: madeMeta(name), Type: corev1.SecretTypeTLS, Data: data,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return s.data(ctx, name)
	}
	if err != nil {
		return nil, s.about(name, err)
	}
	return data, nil
}

// shownRoot is the root of the certificate that the hub shows. It is another one than what signs while roots are exchanged, and is shown as
// long as it is served: agents that have not renewed their certificate since trust no other one.
func (s *Store) shownRoot(ctx context.Context, roots pki.Bundle, authority *pki.Authority) (*x509.Certificate, error) {
	data, err := s.data(ctx, ServerSecret)
	if err != nil {
		return nil, err
	}
	if data != nil {
		own, err := pki.ReadGatewayTLS(data)
		if err != nil {
			return nil, s.about(ServerSecret, err)
		}
		if root := own.Chain.Root(); roots.Contains(root) {
			return root, nil
		}
	}
	return authority.Chain().Root(), nil
}

// Hub is the certificate of the hub for these DNS names, made if there is none, or if it has to be renewed: it ends soon, lacks a name, or
// its root is not served any more. One of a user's own PKI is taken as it is.
func (s *Store) Hub(ctx context.Context, dns ...string) (identity.Own, error) {
	roots, authority, err := s.Root(ctx)
	if err != nil {
		return identity.Own{}, err
	}
	secret, err := s.secret(ctx, ServerSecret)
	if err != nil {
		return identity.Own{}, err
	}
	if secret != nil {
		own, err := pki.ReadGatewayTLS(secret.Data)
		if err != nil {
			return identity.Own{}, s.about(ServerSecret, err)
		}
		due := identity.HubDue(own.Chain[0], s.Plane, s.Now(), dns...)
		if !roots.Contains(own.Chain.Root()) {
			due = secret.Labels[snapshot.ManagedByLabel] == snapshot.ManagedBy
		}
		if authority == nil || !due {
			return identity.Own{Chain: own.Chain, Key: own.Key, Roots: roots}, nil
		}
	}
	if authority == nil {
		return identity.Own{}, fmt.Errorf("Secret %s/%s: it does not exist, and Secret %s/%s has no key to sign with: give the hub a certificate of your PKI there, with the DNS names %v", s.Namespace, ServerSecret, s.Namespace, RootSecret, dns)
	}
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return identity.Own{}, err
	}
	chain, err := identity.IssueHub(rand.Reader, s.Now(), authority, key, s.Plane, dns...)
	if err != nil {
		return identity.Own{}, err
	}
	fresh, err := pki.GatewayTLS{Chain: chain, Key: key, Roots: roots}.Data()
	if err != nil {
		return identity.Own{}, err
	}
	if secret != nil {
		return identity.Own{Chain: chain, Key: key, Roots: roots}, s.replace(ctx, ServerSecret, fresh)
	}
	data, err := s.create(ctx, ServerSecret, fresh)
	if err != nil {
		return identity.Own{}, err
	}
	kept, err := pki.ReadGatewayTLS(data) // somebody else may have been first
	return identity.Own{Chain: kept.Chain, Key: kept.Key, Roots: roots}, err
}

func (s *Store) replace(ctx context.Context, name string, data map[string][]byte) error {
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return s.about(name, err)
	}
	if err := s.put(ctx, secret, data); err != nil {
		return s.about(name, err)
	}
	return nil
}
