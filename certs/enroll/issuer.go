package enroll

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
)

// Invite makes a token for the agent of a cluster, which counts for a time. With a UID, it is for the cluster of this one.
func (s *Store) Invite(ctx context.Context, cluster, uid string, lasts time.Duration) (identity.Token, error) {
	roots, authority, err := s.Root(ctx)
	if err != nil {
		return identity.Token{}, err
	}
	if authority == nil {
		return identity.Token{}, fmt.Errorf("cluster %s: the relay's root has no key here, so that no token can be used: give its agent a certificate of your PKI, and use --own-pki", cluster)
	}
	root, err := s.shownRoot(ctx, roots, authority)
	if err != nil {
		return identity.Token{}, err
	}
	token, err := identity.NewToken(rand.Reader, s.Plane, cluster, root)
	if err != nil {
		return identity.Token{}, err
	}
	return token, s.change(ctx, cluster, func(r Record) (Record, error) { return r.invite(token, uid, s.Now().Add(lasts)), nil })
}

// Enroll issues a certificate for a token, once: the chain and all roots in PEM, and the name of the cluster.
func (s *Store) Enroll(ctx context.Context, text string, request []byte, uid string) (cluster string, chain, roots []byte, err error) {
	token, err := identity.ParseToken(text)
	if err != nil {
		return "", nil, nil, err
	}
	return s.issue(ctx, token.Cluster, request, s.named(token.Cluster), func(r Record, key string) (Record, error) { return r.enroll(token, key, uid, s.Now()) })
}

// Renew issues a certificate for another key to an agent that has shown one, which may have expired a while ago.
func (s *Store) Renew(ctx context.Context, shown []*x509.Certificate, request []byte, uid string) (cluster string, chain, roots []byte, err error) {
	if cluster, err = s.agentOf(ctx, shown, identity.Overdue); err != nil {
		return "", nil, nil, err
	}
	return s.issue(ctx, cluster, request, s.named(cluster), func(r Record, key string) (Record, error) { return r.renew(cluster, uid, shown[0], key, s.Now()) })
}

// named returns an error for a request that is for another name than that of the agent of a cluster.
func (s *Store) named(cluster string) func(*pki.Request) error {
	return func(read *pki.Request) error {
		if name := identity.AgentName(s.Plane, cluster); !slices.Equal(read.Hosts(), []string{name}) {
			return fmt.Errorf("cluster %s: the agent asks for a certificate of %v, and may have one of %s: start it without --relay-cluster, or with --relay-cluster %s", cluster, read.Hosts(), name, cluster)
		}
		return nil
	}
}

func (s *Store) agentOf(ctx context.Context, shown []*x509.Certificate, tolerance time.Duration) (string, error) {
	roots, _, err := s.Root(ctx)
	if err != nil {
		return "", err
	}
	return identity.AgentOf(shown, roots, s.Plane, s.Now(), tolerance)
}

// issue signs a request if the record of the cluster lets it, which is stored first.
func (s *Store) issue(
	ctx context.Context, cluster string, request []byte, named func(*pki.Request) error, allow func(r Record, key string) (Record, error),
) (string, []byte, []byte, error) {
	read, err := pki.ReadRequest(request)
	if err != nil {
		return "", nil, nil, err
	}
	if err := named(read); err != nil {
		return "", nil, nil, err
	}
	roots, authority, err := s.Root(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	if authority == nil {
		return "", nil, nil, fmt.Errorf("cluster %s: the hub has no key to sign with: give the agent a certificate of your PKI", cluster)
	}
	if err := s.change(ctx, cluster, func(r Record) (Record, error) { return allow(r, KeyID(read.Public())) }); err != nil {
		return "", nil, nil, err
	}
	chain, err := identity.IssueAgent(rand.Reader, s.Now(), authority, request, s.Plane, cluster)
	if err != nil {
		return "", nil, nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return cluster, chain.PEM(), roots.PEM(), nil
}

// Claimed is the cluster that a certificate or a token names, whether or not it counts; empty if it names none.
func (s *Store) Claimed(shown []*x509.Certificate, text string) string {
	if text != "" {
		token, err := identity.ParseToken(text)
		if err != nil {
			return ""
		}
		return token.Cluster
	}
	if len(shown) == 0 {
		return ""
	}
	cluster, err := identity.ClusterOf(shown[0], s.Plane)
	if err != nil {
		return ""
	}
	return cluster
}
