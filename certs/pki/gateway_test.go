package pki

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const gateways = "spiffe://vm.gloo-mesh.virtualmesh/ns/istio-system/sa/istiod-istio-system-west"

var gatewayGrant = Grant{Subject: Subject{Organization: "Istio", CommonName: "gateways"}, Hosts: []string{gateways}, Life: meshLife}

// newGateway is the certificate of a gateway, with its key.
func newGateway(t testing.TB, root *Authority, key Key) Chain {
	t.Helper()
	issued, err := root.SignLeaf(rand.Reader, now, newRequest(t, key, gateways), gatewayGrant)
	require.NoError(t, err)
	return issued.Chain
}

func TestSignLeaf(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	for name, tt := range map[string]struct {
		key   Key
		usage x509.KeyUsage
	}{
		"ECDSA": {newKey(t), x509.KeyUsageDigitalSignature},
		"RSA":   {rsaKey(), x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment},
	} {
		chain := newGateway(t, root, tt.key)
		require.Len(t, chain, 2, name)
		cert := chain[0]
		assert.NoError(t, tt.key.Check(cert))
		assert.False(t, cert.IsCA, name)
		assert.True(t, cert.BasicConstraintsValid)
		assert.Equal(t, tt.usage, cert.KeyUsage, name)
		assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, cert.ExtKeyUsage)
		assert.Equal(t, []string{gateways}, hostsOf(cert.URIs, cert.DNSNames))
		assert.Equal(t, root.chain[0].SubjectKeyId, cert.AuthorityKeyId)
		assert.Empty(t, cert.PermittedURIDomains)
		assert.Equal(t, now.Add(testYear).Truncate(time.Second), cert.NotAfter)
		assert.NoError(t, Verify(chain, NewBundle(root.chain[0]), now, Want{Usage: ForWorkload, Hosts: []string{gateways}, Key: tt.key}))
		assertError(t, Verify(chain, NewBundle(root.chain[0]), now, Want{Usage: ForCA}), NotCA, "is not a CA")
		_, err := NewAuthority(chain, tt.key)
		assertError(t, err, NotCA, "is not a CA")
	}
}

// TestSignLeafBelow: no CA stands below the certificate, so that any CA may sign it; and nothing outlives its signer.
func TestSignLeafBelow(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	low := gatewayGrant
	low.Life.Lasts, low.TrustDomains, low.Hosts = day, nil, []string{istiod}
	mesh := newMesh(t, root, low)
	issued, err := mesh.SignLeaf(rand.Reader, now, newRequest(t, newKey(t), gateways), gatewayGrant)
	require.NoError(t, err)
	require.Len(t, issued.Chain, 3)
	assert.Same(t, mesh.chain[0], issued.CutBy)
	assert.Equal(t, mesh.chain[0].NotAfter, issued.Chain[0].NotAfter)
	_, err = mesh.Sign(rand.Reader, now, newRequest(t, newKey(t), gateways), gatewayGrant)
	assertError(t, err, PathTooLong, "permits 0 CAs below it, but there are 1")

	_, err = newMesh(t, root, grant).SignLeaf(rand.Reader, now, newRequest(t, newKey(t), gateways), gatewayGrant)
	assertError(t, err, NameNotPermitted, "permits only identities of")
}

func TestSignLeafRefuses(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	for name, tt := range map[string]struct {
		hosts  []string
		change func(*Grant)
		at     time.Duration
		reason Reason
		says   string
	}{
		"another's identity":    {hosts: []string{reviews}, reason: NotAllowed, says: "which the requester does not own"},
		"one's own and another": {hosts: []string{gateways, reviews}, reason: NotAllowed, says: reviews},
		"another trust domain":  {change: func(g *Grant) { g.TrustDomains = []string{"other.example"} }, reason: WrongTrustDomain, says: "other.example"},
		"CAs below":             {change: func(g *Grant) { g.PathLength = 1 }, reason: Unsupported, says: "has CAs below a certificate that is none"},
		"no life":               {change: func(g *Grant) { g.Life = Life{} }, reason: Unsupported, says: "cannot live 0s"},
		"no organisation":       {change: func(g *Grant) { g.Subject.Organization = "" }, reason: Unsupported, says: "1 to 64 bytes"},
		"expired root":          {at: 20 * testYear, reason: Expired, says: "expired at"},
	} {
		g := gatewayGrant
		if tt.change != nil {
			tt.change(&g)
		}
		if tt.hosts == nil {
			tt.hosts = []string{gateways}
		}
		issued, err := root.SignLeaf(rand.Reader, now.Add(tt.at), newRequest(t, newKey(t), tt.hosts...), g)
		assert.Empty(t, issued.Chain, name)
		assertError(t, err, tt.reason, tt.says)
	}
}

func TestGatewayTLS(t *testing.T) {
	t.Parallel()
	root, other := newRoot(t), newRoot(t)
	key := newKey(t)
	chain := newGateway(t, root, key)
	data, err := GatewayTLS{Chain: chain, Key: key, Roots: NewBundle(root.chain[0], other.chain[0])}.Data()
	require.NoError(t, err)
	assert.Equal(t, chain[:1].PEM(), data[TLSCertKey], "without the root")
	assert.Equal(t, append(root.chain.PEM(), other.chain.PEM()...), data[TLSRootKey], "its own root first")
	assert.Len(t, data, 3)
	read, err := ReadGatewayTLS(data)
	require.NoError(t, err)
	assert.Equal(t, chain, read.Chain)
	assert.True(t, read.Roots.Equal(NewBundle(root.chain[0], other.chain[0])))

	_, err = GatewayTLS{Chain: chain, Key: key, Roots: NewBundle(other.chain[0])}.Data()
	assertError(t, err, UnknownRoot, "is not trusted")
	_, err = GatewayTLS{Chain: chain, Key: newKey(t), Roots: NewBundle(root.chain[0])}.Data()
	assertError(t, err, KeyMismatch, "private key")
	_, err = GatewayTLS{Chain: chain[:1], Key: key, Roots: NewBundle(root.chain[0])}.Data()
	assertError(t, err, Incomplete, "is missing")
	_, err = GatewayTLS{}.Data()
	assertError(t, err, Missing, "has no certificate")

	mesh := newMesh(t, root, grant)
	for name, tt := range map[string]struct {
		data   map[string][]byte
		reason Reason
		says   string
	}{
		"no certificate":  {with(data, TLSCertKey, nil), Missing, "has no tls.crt"},
		"empty key":       {with(data, TLSKeyKey, []byte{}), Missing, "has no tls.key"},
		"no roots":        {with(data, TLSRootKey, nil), Missing, "has no ca.crt"},
		"another's key":   {with(data, TLSKeyKey, pemOf(t, newKey(t))), KeyMismatch, "private key"},
		"another's roots": {with(data, TLSRootKey, other.chain.PEM()), Incomplete, "is missing"},
		"garbage":         {with(data, TLSRootKey, []byte("x")), Unreadable, "ca.crt"},
		"a CA": {map[string][]byte{TLSCertKey: mesh.chain[:1].PEM(), TLSKeyKey: pemOf(t, mesh.key), TLSRootKey: root.chain.PEM()},
			WrongUsage, "is a CA, not a gateway's"},
		"a root": {map[string][]byte{TLSCertKey: root.chain.PEM(), TLSKeyKey: pemOf(t, root.key), TLSRootKey: root.chain.PEM()},
			WrongUsage, "is a CA, not a gateway's"},
	} {
		_, err := ReadGatewayTLS(tt.data)
		assertError(t, err, tt.reason, tt.says)
		assert.NotContains(t, err.Error(), "PRIVATE", name)
	}
}

// renewed is a root with the key of another, as cert-manager renews it by default.
func renewed(t *testing.T, root *Authority) *Authority {
	t.Helper()
	cert := sign(t, root, root.key.Public(), &x509.Certificate{
		RawSubject: root.chain[0].RawSubject, SubjectKeyId: root.chain[0].SubjectKeyId, NotBefore: now, NotAfter: now.Add(testYear),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	out, err := NewAuthority(Chain{cert}, root.key)
	require.NoError(t, err)
	return out
}

// TestRootsOfOneKey: what was written for one of two roots with the same key is read as such, in whatever order they are.
func TestRootsOfOneKey(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	again := renewed(t, root)
	roots := NewBundle(root.chain[0], again.chain[0])
	for _, signer := range []*Authority{root, again} {
		key := newKey(t)
		data, err := GatewayTLS{Chain: newGateway(t, signer, key), Key: key, Roots: roots}.Data()
		require.NoError(t, err)
		gateway, err := ReadGatewayTLS(data)
		require.NoError(t, err)
		assert.Equal(t, Fingerprint(signer.chain[0]), Fingerprint(gateway.Chain.Root()), "gateways")
		for _, first := range []bool{true, false} {
			data, err := CACerts{Authority: newMesh(t, signer, gatewayGrant), Roots: roots, SignerFirst: first}.Data()
			require.NoError(t, err)
			cacerts, err := ReadCACerts(data)
			require.NoError(t, err)
			assert.Equal(t, Fingerprint(signer.chain[0]), Fingerprint(cacerts.Authority.chain.Root()), "cacerts")
		}
	}
}

// TestGatewaysMeet: two gateways with what their Secrets have speak mutual TLS, and know each other.
func TestGatewaysMeet(t *testing.T) {
	t.Parallel()
	root, next := newRoot(t), newRoot(t)
	config := func(by *Authority, trusted ...*x509.Certificate) *tls.Config {
		key := newKey(t)
		data, err := GatewayTLS{Chain: newGateway(t, by, key), Key: key, Roots: NewBundle(trusted...)}.Data()
		require.NoError(t, err)
		pair, err := tls.X509KeyPair(data[TLSCertKey], data[TLSKeyKey])
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(data[TLSRootKey]))
		return &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, Time: func() time.Time { return now },
			InsecureSkipVerify: true, // there is no host name: the chain is verified here, as Envoy does
			VerifyConnection: func(state tls.ConnectionState) error {
				return Verify(Chain(state.PeerCertificates), NewBundle(trusted...), now, Want{Usage: ForWorkload, Hosts: []string{gateways}})
			},
		}
	}
	meet := func(client, server *tls.Config) error {
		listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
		require.NoError(t, err)
		defer func() { _ = listener.Close() }()
		theirs := make(chan error, 1)
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				defer func() { _ = conn.Close() }()
				_, err = conn.Write([]byte("x")) // after its handshake
			}
			theirs <- err
		}()
		conn, err := tls.Dial("tcp", listener.Addr().String(), client)
		if err == nil {
			defer func() { _ = conn.Close() }()
		}
		return cmp.Or(err, <-theirs)
	}
	old, both := config(root, root.chain[0]), config(root, root.chain[0], next.chain[0])
	renewed := config(next, root.chain[0], next.chain[0])
	assert.NoError(t, meet(old, both))
	assert.NoError(t, meet(both, renewed))
	assert.NoError(t, meet(renewed, both))
	assertError(t, meet(old, renewed), UnknownRoot, "which is not trusted")
	assert.Error(t, meet(renewed, old), "the server does not trust the client")
}

func FuzzReadGatewayTLS(f *testing.F) {
	root := newRoot(f)
	key := newKey(f)
	data, err := GatewayTLS{Chain: newGateway(f, root, key), Key: key, Roots: NewBundle(root.chain...)}.Data()
	require.NoError(f, err)
	f.Add(data[TLSCertKey], data[TLSKeyKey], data[TLSRootKey])
	f.Add(root.chain.PEM(), pemOf(f, root.key), root.chain.PEM())
	f.Add([]byte("a"), []byte("b"), []byte("c"))
	f.Add(data[TLSRootKey], data[TLSKeyKey], data[TLSCertKey])
	f.Fuzz(func(t *testing.T, cert, key, roots []byte) {
		read, err := ReadGatewayTLS(map[string][]byte{TLSCertKey: cert, TLSKeyKey: key, TLSRootKey: roots})
		if err != nil {
			sayWhy(t, err, key)
			return
		}
		written, err := read.Data()
		require.NoError(t, err)
		require.NoError(t, read.Key.Check(read.Chain[0]))
		require.False(t, read.Chain[0].IsCA)
		if again, err := ReadGatewayTLS(written); err == nil { // see FuzzReadBundle
			require.True(t, again.Roots.Equal(read.Roots))
			require.True(t, again.Chain[0].Equal(read.Chain[0]))
			require.Equal(t, written, must(again.Data()))
		}
	})
}

func must(data map[string][]byte, err error) map[string][]byte {
	if err != nil {
		panic(err)
	}
	return maps.Clone(data)
}
