package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Names of the tests.
const (
	istiod   = "spiffe://cluster.local/ns/istio-system/sa/istiod"
	reviews  = "spiffe://cluster.local/ns/bookinfo/sa/reviews"
	foreign  = "spiffe://other.example/ns/bookinfo/sa/reviews"
	day      = 24 * time.Hour
	testYear = 365 * day
)

// now is the time of the tests, with a fraction of a second, as clocks have it.
var now = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

var (
	meshLife = Life{Lasts: testYear, Backdate: time.Hour}
	rootLife = Life{Lasts: 10 * testYear, Backdate: time.Hour}
	ours     = Subject{Organization: "gloo-mesh", CommonName: "root"}
	grant    = Grant{
		Subject: Subject{Organization: "Istio", CommonName: "mesh"}, Hosts: []string{istiod}, Life: meshLife,
		TrustDomains: []string{"cluster.local"},
	}
)

// rsaKey is made once: it takes a tenth of a second.
var rsaKey = sync.OnceValue(func() Key {
	key, err := NewRSAKey(rand.Reader, minRSABits)
	if err != nil {
		panic(err)
	}
	return key
})

func newKey(t testing.TB) Key {
	t.Helper()
	key, err := NewECDSAKey(rand.Reader, elliptic.P256())
	require.NoError(t, err)
	return key
}

func newRoot(t testing.TB) *Authority {
	t.Helper()
	root, err := NewRoot(rand.Reader, now, newKey(t), ours, rootLife)
	require.NoError(t, err)
	return root
}

func newRequest(t testing.TB, key Key, hosts ...string) *Request {
	t.Helper()
	text, err := NewRequest(rand.Reader, key, "Istio", hosts)
	require.NoError(t, err)
	req, err := ReadRequest(text)
	require.NoError(t, err)
	return req
}

// newMesh is an intermediate that a root signed.
func newMesh(t testing.TB, root *Authority, g Grant) *Authority {
	t.Helper()
	key := newKey(t)
	issued, err := root.Sign(rand.Reader, now, newRequest(t, key, g.Hosts...), g)
	require.NoError(t, err)
	mesh, err := NewAuthority(issued.Chain, key)
	require.NoError(t, err)
	return mesh
}

// sign makes any certificate, also a wrong one.
func sign(t testing.TB, by *Authority, public any, template *x509.Certificate) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(7)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(day)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.chain[0], public, by.key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

// newWorkload is what istiod makes of a CSR (security/pkg/pki/util, genCertTemplateFromCSR).
func newWorkload(t testing.TB, mesh *Authority, host string, change ...func(*x509.Certificate)) (Chain, Key) {
	t.Helper()
	uri, err := url.Parse(host)
	require.NoError(t, err)
	template := &x509.Certificate{
		URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	for _, c := range change {
		c(template)
	}
	key := newKey(t)
	return append(Chain{sign(t, mesh, key.Public(), template)}, mesh.chain...), key
}

// assertError checks an error's reason, that it says something about it, and that it has all its parts.
func assertError(t testing.TB, err error, reason Reason, says string) {
	t.Helper()
	var e *Error
	if !assert.ErrorAs(t, err, &e) {
		return
	}
	assert.Equal(t, reason, e.Reason, err)
	assert.Equal(t, reason, ReasonOf(err))
	assert.ErrorContains(t, err, says)
	assert.NotEmpty(t, e.Object, err)
	assert.NotEmpty(t, e.Problem, err)
	assert.NotEmpty(t, e.Next, err)
	assert.Less(t, len(err.Error()), 1200, "an error is for people")
}

func ecdsaKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}
