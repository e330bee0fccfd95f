package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewRoot(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	cert := root.chain[0]
	assert.True(t, cert.IsCA && cert.BasicConstraintsValid)
	assert.Equal(t, 1, cert.MaxPathLen)
	assert.Equal(t, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, cert.KeyUsage)
	assert.Equal(t, []string{"gloo-mesh"}, cert.Subject.Organization)
	assert.NotEmpty(t, cert.SubjectKeyId)
	assert.Equal(t, cert.SubjectKeyId, cert.AuthorityKeyId)
	assert.Equal(t, time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC), cert.NotBefore)
	assert.Equal(t, time.Date(2036, 2, 27, 12, 0, 0, 0, time.UTC), cert.NotAfter)
	for _, extension := range cert.Extensions {
		if id := extension.Id.String(); id == "2.5.29.19" || id == "2.5.29.15" {
			assert.True(t, extension.Critical, id)
		}
	}
	other := newRoot(t)
	assert.NotEqual(t, cert.SerialNumber, other.chain[0].SerialNumber)
	assert.NotEqual(t, cert.RawSubject, other.chain[0].RawSubject, "roots that follow one another have names of their own")
	assert.LessOrEqual(t, cert.SerialNumber.BitLen(), 128)
}

func TestSign(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]Key{"ECDSA": newKey(t), "RSA": rsaKey()} {
		root, err := NewRoot(rand.Reader, now, rsaKey(), ours, rootLife)
		if name == "RSA" {
			root = newRoot(t)
		}
		require.NoError(t, err)
		issued, err := root.Sign(rand.Reader, now, newRequest(t, key, istiod), grant)
		require.NoError(t, err)
		require.Len(t, issued.Chain, 2)
		assert.Nil(t, issued.CutBy)
		cert := issued.Chain[0]
		assert.NoError(t, key.Check(cert))
		assert.Equal(t, []string{istiod}, hostsOf(cert.URIs, cert.DNSNames))
		assert.Equal(t, 0, cert.MaxPathLen)
		assert.True(t, cert.MaxPathLenZero)
		assert.Equal(t, []string{"cluster.local"}, cert.PermittedURIDomains)
		assert.True(t, cert.PermittedDNSDomainsCritical)
		assert.Equal(t, root.chain[0].SubjectKeyId, cert.AuthorityKeyId)
		assert.NotEqual(t, cert.RawIssuer, cert.RawSubject)
		assert.Equal(t, now.Add(testYear).Truncate(time.Second), cert.NotAfter)
		mesh, err := NewAuthority(issued.Chain, key)
		require.NoError(t, err)
		workload, _ := newWorkload(t, mesh, reviews)
		assert.NoError(t, Verify(workload, NewBundle(root.chain[0]), now, Want{Usage: ForWorkload, Hosts: []string{reviews}}))
	}
}

// TestSubjectsDiffer: a mesh may have the organisation of its root. If the names were the same, the certificate would
// look self-signed.
func TestSubjectsDiffer(t *testing.T) {
	t.Parallel()
	same := grant
	same.Subject = ours
	mesh := newMesh(t, newRoot(t), same)
	assert.NotEqual(t, mesh.chain[0].RawSubject, mesh.chain[1].RawSubject)
	assert.Equal(t, mesh.chain[1].SubjectKeyId, mesh.chain[0].AuthorityKeyId)
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	for name, tt := range map[string]struct {
		hosts  []string
		change func(*Grant)
		at     time.Duration
		reason Reason
		says   string
	}{
		"another's identity":    {hosts: []string{reviews}, reason: NotAllowed, says: `asks for "` + reviews + `", which the requester does not own`},
		"one's own and another": {hosts: []string{istiod, reviews}, reason: NotAllowed, says: reviews},
		"nothing is owned":      {change: func(g *Grant) { g.Hosts = nil }, reason: NotAllowed, says: "it owns none"},
		"another trust domain":  {change: func(g *Grant) { g.TrustDomains = []string{"other.example"} }, reason: WrongTrustDomain, says: "other.example"},
		"no trust domain":       {change: func(g *Grant) { g.TrustDomains = []string{".local"} }, reason: Unsupported, says: `trust domain ".local"`},
		"CAs below":             {change: func(g *Grant) { g.PathLength = 1 }, reason: PathTooLong, says: "permits 1 CAs below it, but there are 2"},
		"negative path":         {change: func(g *Grant) { g.PathLength = -1 }, reason: Unsupported, says: "negative"},
		"no life":               {change: func(g *Grant) { g.Life = Life{} }, reason: Unsupported, says: "cannot live 0s"},
		"post-dated":            {change: func(g *Grant) { g.Life.Backdate = -time.Hour }, reason: Unsupported, says: "backdated by -1h"},
		"no organisation":       {change: func(g *Grant) { g.Subject.Organization = "" }, reason: Unsupported, says: "1 to 64 bytes"},
		"long name":             {change: func(g *Grant) { g.Subject.CommonName = strings.Repeat("a", 65) }, reason: Unsupported, says: "1 to 64 bytes"},
		"expired root":          {at: 20 * testYear, reason: Expired, says: "expired at"},
		"root of tomorrow":      {at: -90 * time.Minute, reason: NotYetValid, says: "correct the clock"},
	} {
		g := grant
		if tt.change != nil {
			tt.change(&g)
		}
		if tt.hosts == nil {
			tt.hosts = []string{istiod}
		}
		issued, err := root.Sign(rand.Reader, now.Add(tt.at), newRequest(t, newKey(t), tt.hosts...), g)
		assert.Empty(t, issued.Chain, name)
		assertError(t, err, tt.reason, tt.says)
	}
	_, err := root.Sign(rand.Reader, now, newRequest(t, root.key, istiod), grant)
	assertError(t, err, NotAllowed, "signer's own key")
	_, err = root.Sign(rand.Reader, time.Time{}, newRequest(t, newKey(t), istiod), grant)
	assertError(t, err, Unsupported, "cannot live")
	_, err = root.Sign(rand.Reader, now, &Request{public: newKey(t).Public()}, grant)
	assertError(t, err, NotAllowed, "asks for none")
}

func TestEntropyThatFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("no entropy")
	_, err := NewRoot(iotest.ErrReader(broken), now, newKey(t), ours, rootLife)
	assert.ErrorIs(t, err, broken)
	assertError(t, err, Failed, "serial number cannot be made: no entropy")
	_, err = NewRoot(bytes.NewReader(make([]byte, 64)), now, newKey(t), ours, rootLife)
	assertError(t, err, Failed, "is 0")
	_, err = newRoot(t).Sign(iotest.ErrReader(broken), now, newRequest(t, newKey(t), istiod), grant)
	assert.ErrorIs(t, err, broken)
}

// TestCorporateRoot: the user's CA may itself be an intermediate.
func TestCorporateRoot(t *testing.T) {
	t.Parallel()
	rootKey, middleKey := newKey(t), newKey(t)
	span, err := rootLife.within("", now, nil)
	require.NoError(t, err)
	corporate := func(pathLength int) *Authority {
		template, err := caTemplate(rand.Reader, rootKey.Public(), Subject{Organization: "Corporate"}, span, pathLength)
		require.NoError(t, err)
		cert, err := create(rand.Reader, template, template, rootKey.Public(), rootKey)
		require.NoError(t, err)
		template, err = caTemplate(rand.Reader, middleKey.Public(), Subject{Organization: "Department"}, span, 1)
		require.NoError(t, err)
		middle, err := create(rand.Reader, template, cert, middleKey.Public(), rootKey)
		require.NoError(t, err)
		authority, err := NewAuthority(Chain{middle, cert}, middleKey)
		require.NoError(t, err)
		return authority
	}
	issued, err := corporate(2).Sign(rand.Reader, now, newRequest(t, newKey(t), istiod), grant)
	require.NoError(t, err)
	assert.Len(t, issued.Chain, 3)
	_, err = corporate(1).Sign(rand.Reader, now, newRequest(t, newKey(t), istiod), grant)
	assertError(t, err, PathTooLong, "Corporate")
}

// TestNameConstraintsOfTheSigner: a user's CA may not be made for meshes.
func TestNameConstraintsOfTheSigner(t *testing.T) {
	t.Parallel()
	root, key := newRoot(t), newKey(t)
	cert := sign(t, root, key.Public(), &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: -1, KeyUsage: x509.KeyUsageCertSign, PermittedURIDomains: []string{"other.example"},
	})
	root.chain[0].MaxPathLen = -1
	limited, err := NewAuthority(append(Chain{cert}, root.chain...), key)
	require.NoError(t, err)
	_, err = limited.Sign(rand.Reader, now, newRequest(t, newKey(t), istiod), grant)
	assertError(t, err, NameNotPermitted, `permits only identities of "other.example"`)
}

func TestNewAuthorityRefuses(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	mesh := newMesh(t, root, grant)
	workload, key := newWorkload(t, mesh, reviews)
	noSign, noSignKey := newKey(t), newKey(t)
	unsigning := sign(t, root, noSignKey.Public(), &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature})
	for name, tt := range map[string]struct {
		chain  Chain
		key    Key
		reason Reason
	}{
		"nothing":             {nil, key, Missing},
		"another's key":       {root.chain, noSign, KeyMismatch},
		"a workload":          {workload, key, NotCA},
		"may not sign":        {append(Chain{unsigning}, root.chain...), noSignKey, NotCA},
		"no root":             {mesh.chain[:1], mesh.key, Incomplete},
		"another's root":      {Chain{mesh.chain[0], newRoot(t).chain[0]}, mesh.key, Incomplete},
		"root of another key": {Chain{mesh.chain[0], impostor(t, root)}, mesh.key, BadSignature},
	} {
		_, err := NewAuthority(tt.chain, tt.key)
		assertError(t, err, tt.reason, "")
		assert.Error(t, err, name)
	}
}

// impostor has the name of a root and another key.
func impostor(t testing.TB, root *Authority) *x509.Certificate {
	t.Helper()
	key := newKey(t)
	template := *root.chain[0]
	template.SubjectKeyId, template.AuthorityKeyId = []byte{1}, []byte{1}
	template.PublicKey = key.Public()
	cert, err := create(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	return cert
}

func BenchmarkSign(b *testing.B) {
	for name, key := range map[string]Key{"ECDSA-P256": newKey(b), "RSA-2048": rsaKey()} {
		b.Run(name, func(b *testing.B) {
			root, err := NewRoot(rand.Reader, now, key, ours, rootLife)
			require.NoError(b, err)
			req := newRequest(b, newKey(b), istiod)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := root.Sign(rand.Reader, now, req, grant); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	root := newRoot(b)
	workload, _ := newWorkload(b, newMesh(b, root, grant), reviews)
	roots := NewBundle(root.chain...)
	b.ReportAllocs()
	for b.Loop() {
		if err := Verify(workload, roots, now, Want{Usage: ForWorkload, Hosts: []string{reviews}}); err != nil {
			b.Fatal(err)
		}
	}
}
