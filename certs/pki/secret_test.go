package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with is a copy of a Secret's data with one key changed; nil removes it.
func with(data map[string][]byte, key string, value []byte) map[string][]byte {
	data = maps.Clone(data)
	if data[key] = value; value == nil {
		delete(data, key)
	}
	return data
}

func pemOf(t testing.TB, key Key) []byte {
	t.Helper()
	text, err := key.PEM()
	require.NoError(t, err)
	return text
}

func TestReadAuthority(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	mesh := newMesh(t, root, grant)
	rootSecret, err := root.RootSecret()
	require.NoError(t, err)
	cacerts, err := CACerts{Authority: mesh, Roots: NewBundle(root.chain...)}.Data()
	require.NoError(t, err)
	other := newRoot(t)
	tlsSecret := map[string][]byte{TLSCertKey: mesh.chain[:1].PEM(), TLSKeyKey: pemOf(t, mesh.key), TLSRootKey: root.chain.PEM()}
	both := maps.Clone(tlsSecret)
	maps.Copy(both, rootSecret)
	workload, key := newWorkload(t, mesh, reviews)
	for name, tt := range map[string]struct {
		data   map[string][]byte
		want   Chain
		reason Reason
		says   string
	}{
		"root":                      {data: rootSecret, want: root.chain},
		"root among others":         {data: with(rootSecret, RootCertKey, append(other.chain.PEM(), root.chain.PEM()...)), want: root.chain},
		"cert-manager, self-signed": {data: map[string][]byte{TLSCertKey: root.chain.PEM(), TLSKeyKey: pemOf(t, root.key), TLSRootKey: root.chain.PEM()}, want: root.chain},
		"cert-manager, signed":      {data: tlsSecret, want: mesh.chain},
		"TLS with the whole chain":  {data: with(with(tlsSecret, TLSCertKey, mesh.chain.PEM()), TLSRootKey, nil), want: mesh.chain},
		"cacerts":                   {data: cacerts, want: mesh.chain},
		"cacerts of the original":   {data: with(cacerts, RootKeyKey, []byte{}), want: mesh.chain},

		"nothing":            {data: nil, reason: Missing, says: "has no CA; give it root-cert.pem and key.pem"},
		"no key":             {data: with(rootSecret, RootKeyKey, nil), reason: Missing, says: `of one, it has "root-cert.pem"`},
		"two forms":          {data: both, reason: Unsupported, says: "two private keys, tls.key and key.pem"},
		"another's key":      {data: with(rootSecret, RootKeyKey, pemOf(t, other.key)), reason: KeyMismatch, says: "is not for this private key"},
		"key is damaged":     {data: with(rootSecret, RootKeyKey, []byte("hush")), reason: Unreadable, says: "key.pem is not PEM"},
		"root is damaged":    {data: with(rootSecret, RootCertKey, []byte("hush")), reason: Unreadable, says: "root-cert.pem is not PEM"},
		"ca.crt is damaged":  {data: with(tlsSecret, TLSRootKey, []byte("hush")), reason: Unreadable, says: "ca.crt is not PEM"},
		"no root":            {data: with(tlsSecret, TLSRootKey, nil), reason: Incomplete, says: "whose certificate is missing"},
		"another's root":     {data: with(tlsSecret, TLSRootKey, other.chain.PEM()), reason: Incomplete, says: "whose certificate is missing"},
		"a workload":         {data: map[string][]byte{TLSCertKey: workload.PEM(), TLSKeyKey: pemOf(t, key)}, reason: NotCA, says: "isCA: true"},
		"key of the root":    {data: with(with(tlsSecret, TLSCertKey, mesh.chain.PEM()), TLSKeyKey, pemOf(t, root.key)), want: root.chain},
		"key only in ca.crt": {data: with(tlsSecret, TLSKeyKey, pemOf(t, root.key)), reason: KeyMismatch, says: "is not for this private key"},
	} {
		got, err := ReadAuthority(tt.data)
		if tt.reason != "" {
			assert.Nil(t, got, name)
			assertError(t, err, tt.reason, tt.says)
			assert.NotContains(t, err.Error(), "hush", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, tt.want.PEM(), got.Chain().PEM(), name)
		assert.NoError(t, got.key.Check(got.Chain()[0]))
	}
}

// TestCACerts does with the data what istiod does (security/pkg/pki/util, Verify, and security/pkg/pki/ca, minTTL).
func TestCACerts(t *testing.T) {
	t.Parallel()
	root, next := newRoot(t), newRoot(t)
	for name, roots := range map[string]Bundle{"one root": NewBundle(root.chain...), "two roots": NewBundle(root.chain[0], next.chain[0])} {
		mesh := newMesh(t, root, grant)
		data, err := CACerts{Authority: mesh, Roots: roots}.Data()
		require.NoError(t, err, name)
		assert.Equal(t, []string{CACertKey, CAKeyKey, CAChainKey, RootCertKey}, slices.Sorted(maps.Keys(data)))

		_, err = tls.X509KeyPair(data[CACertKey], data[CAKeyKey])
		require.NoError(t, err, name)
		trusted, above := x509.NewCertPool(), x509.NewCertPool()
		require.True(t, trusted.AppendCertsFromPEM(data[RootCertKey]))
		require.True(t, above.AppendCertsFromPEM(data[CAChainKey]))
		certs, err := ReadCertificates(data[CACertKey])
		require.NoError(t, err)
		require.Len(t, certs, 1)
		_, err = certs[0].Verify(x509.VerifyOptions{Roots: trusted, Intermediates: above, CurrentTime: now})
		require.NoError(t, err, name)
		assert.True(t, bytes.HasPrefix(data[CAChainKey], data[CACertKey]), "istiod reads the expiry of the first certificate in the chain")

		again, err := ReadCACerts(data)
		require.NoError(t, err, name)
		assert.True(t, roots.Equal(again.Roots))
		assert.Equal(t, mesh.chain.PEM(), again.Authority.chain.PEM())
		rewritten, err := again.Data()
		require.NoError(t, err)
		assert.Equal(t, data, rewritten, "same input, same bytes")
	}
	_, err := CACerts{Authority: newMesh(t, root, grant), Roots: NewBundle(next.chain...)}.Data()
	assertError(t, err, UnknownRoot, Fingerprint(next.chain[0]))
	assert.ErrorContains(t, err, Fingerprint(root.chain[0]))
}

func TestReadCACerts(t *testing.T) {
	t.Parallel()
	root, next := newRoot(t), newRoot(t)
	mesh := newMesh(t, root, grant)
	good, err := CACerts{Authority: mesh, Roots: NewBundle(root.chain...)}.Data()
	require.NoError(t, err)
	form := map[string][]byte{TLSCertKey: mesh.chain[:1].PEM(), TLSKeyKey: pemOf(t, mesh.key), TLSRootKey: root.chain.PEM()}
	own, err := root.RootSecret()
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		data   map[string][]byte
		reason Reason
		says   string
	}{
		"TLS":                  {data: form},
		"chain without a root": {data: with(good, CAChainKey, mesh.chain[:1].PEM())},
		"istiod's own": {data: map[string][]byte{
			CACertKey: own[RootCertKey], CAKeyKey: own[RootKeyKey], RootCertKey: own[RootCertKey], CAChainKey: {}, RootKeyKey: {}, "istio-generated": {},
		}},
		"no certificate":  {with(good, CACertKey, nil), Missing, "has no ca-cert.pem"},
		"no key":          {with(good, CAKeyKey, nil), Missing, "has no ca-key.pem"},
		"no chain":        {with(good, CAChainKey, nil), Missing, "has no cert-chain.pem"},
		"no root":         {with(good, RootCertKey, nil), Missing, "has no root-cert.pem"},
		"empty root":      {with(good, RootCertKey, []byte{}), Missing, "has no root-cert.pem"},
		"another's root":  {with(good, RootCertKey, next.chain.PEM()), UnknownRoot, "which is not trusted"},
		"TLS, no ca.crt":  {with(form, TLSRootKey, nil), Missing, "has no ca.crt"},
		"another's key":   {with(good, CAKeyKey, pemOf(t, root.key)), KeyMismatch, "is not for this private key"},
		"damaged chain":   {with(good, CAChainKey, []byte("hush")), Unreadable, "cert-chain.pem is not PEM"},
		"nothing":         {nil, Missing, "has no ca-key.pem"},
		"certificate cut": {with(good, CACertKey, good[CACertKey][:100]), Unreadable, "ca-cert.pem is damaged"},
	} {
		got, err := ReadCACerts(tt.data)
		if tt.reason != "" {
			assert.Nil(t, got.Authority, name)
			assertError(t, err, tt.reason, tt.says)
			continue
		}
		require.NoError(t, err, name)
		assert.True(t, got.Roots.Equal(NewBundle(root.chain...)), name)
	}
}

// TestRootIsRenewedWithItsKey, as cert-manager does by default: chains with the old certificate stay trusted, as in every
// TLS library.
func TestRootIsRenewedWithItsKey(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	mesh := newMesh(t, root, grant)
	workload, _ := newWorkload(t, mesh, reviews)
	renewed, err := NewRoot(rand.Reader, now, root.key, ours, rootLife)
	require.NoError(t, err)
	roots := NewBundle(renewed.chain...)
	require.False(t, roots.Contains(root.chain[0]))
	assert.NoError(t, Verify(workload, roots, now, Want{Usage: ForWorkload}))
	assert.NoError(t, Verify(mesh.chain, roots, now, Want{Usage: ForCA}))
	data, err := CACerts{Authority: mesh, Roots: roots}.Data()
	require.NoError(t, err)
	_, err = ReadCACerts(data)
	assert.NoError(t, err)
}

// TestRootSecretOfTheOriginal: RSA keys are PKCS #1 there.
func TestRootSecretOfTheOriginal(t *testing.T) {
	t.Parallel()
	root, err := NewRoot(rand.Reader, now, rsaKey(), ours, rootLife)
	require.NoError(t, err)
	data, err := root.RootSecret()
	require.NoError(t, err)
	assert.Equal(t, []string{RootKeyKey, RootCertKey}, slices.Sorted(maps.Keys(data)))
	assert.True(t, bytes.HasPrefix(data[RootKeyKey], []byte("-----BEGIN RSA PRIVATE KEY-----")))
}

// TestCACertsOrder: the order of root-cert.pem changes with the signer's root, or not at all.
func TestCACertsOrder(t *testing.T) {
	t.Parallel()
	one, other := newRoot(t), newRoot(t)
	roots := NewBundle(one.chain.Root(), other.chain.Root())
	for _, root := range []*Authority{one, other} {
		data, err := CACerts{Authority: newMesh(t, root, grant), Roots: roots}.Data()
		require.NoError(t, err)
		assert.Equal(t, roots.PEM(), data[RootCertKey], "the order of the Bundle, whoever signs")

		first, err := CACerts{Authority: newMesh(t, root, grant), Roots: roots, SignerFirst: true}.Data()
		require.NoError(t, err)
		assert.True(t, bytes.HasPrefix(first[RootCertKey], root.chain.PEM()))
		read, err := ReadCACerts(first)
		require.NoError(t, err)
		assert.True(t, read.Roots.Equal(roots))
		again, err := read.Data()
		require.NoError(t, err)
		assert.Equal(t, first, again, "read and written, it stays as it was")
	}
}
