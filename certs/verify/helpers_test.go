package verify

import (
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

var life = pki.Life{Lasts: 365 * 24 * time.Hour, Backdate: time.Hour}

func newKey(t testing.TB) pki.Key {
	t.Helper()
	key, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	require.NoError(t, err)
	return key
}

func newRoot(t testing.TB, now time.Time) *pki.Authority {
	t.Helper()
	root, err := pki.NewRoot(rand.Reader, now, newKey(t), pki.Subject{Organization: "test", CommonName: "root"}, life)
	require.NoError(t, err)
	return root
}

// newMesh is the content of cacerts: an intermediate of a root, and the roots that are trusted.
func newMesh(t testing.TB, now time.Time, root *pki.Authority, roots ...*pki.Authority) pki.CACerts {
	t.Helper()
	key := newKey(t)
	hosts := []string{"spiffe://cluster.local/ns/istio-system/sa/istiod"}
	text, err := pki.NewRequest(rand.Reader, key, "test", hosts)
	require.NoError(t, err)
	request, err := pki.ReadRequest(text)
	require.NoError(t, err)
	issued, err := root.Sign(rand.Reader, now, request, pki.Grant{Subject: pki.Subject{Organization: "test", CommonName: "mesh"}, Hosts: hosts, Life: life})
	require.NoError(t, err)
	authority, err := pki.NewAuthority(issued.Chain, key)
	require.NoError(t, err)
	return pki.CACerts{Authority: authority, Roots: bundle(append(roots, root)...)}
}

func bundle(roots ...*pki.Authority) pki.Bundle {
	var out pki.Bundle
	for _, root := range roots {
		out = out.Union(pki.NewBundle(root.Chain()[0]))
	}
	return out
}

func sum(root *pki.Authority) string { return pki.Fingerprint(root.Chain()[0]) }

// answer is that of a replica with this Secret.
func answer(c pki.CACerts) *Answer {
	chain := c.Authority.Chain()
	return &Answer{
		Chain: chain, Root: pki.Fingerprint(chain.Root()), Signer: pki.Fingerprint(chain[0]), Bundle: c.Roots, BundlePEM: c.Roots.PEM(),
		FirstRoot: pki.Fingerprint(chain.Root()),
	}
}

func rootSince(root *pki.Authority, at time.Time) certificatesv1.RootSince {
	stamp := metav1.NewTime(at)
	return certificatesv1.RootSince{Root: sum(root), Since: &stamp}
}
