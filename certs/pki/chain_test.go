package pki

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
)

func TestReadCertificates(t *testing.T) {
	t.Parallel()
	a, b := newRoot(t).chain[0], newRoot(t).chain[0]
	textA, textB := Chain{a}.PEM(), Chain{b}.PEM()
	join := func(texts ...[]byte) []byte { return bytes.Join(texts, nil) }
	huge := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), maxRSABits, 1), E: 65537}
	slow := sign(t, newRoot(t), huge, &x509.Certificate{IsCA: true, BasicConstraintsValid: true})
	for name, tt := range map[string]struct {
		text   []byte
		want   Chain
		reason Reason
		says   string
	}{
		"one":          {text: textA, want: Chain{a}},
		"in order":     {text: join(textB, textA), want: Chain{b, a}},
		"repeated":     {text: join(textB, textA, textB), want: Chain{b, a}},
		"text around":  {text: join([]byte("# old\n"), textA, []byte("\r\n# new\r\n"), bytes.ReplaceAll(textB, []byte("\n"), []byte("\r\n"))), want: Chain{a, b}},
		"the most":     {text: bytes.Repeat(textA, maxBlocks), want: Chain{a}},
		"too many":     {text: bytes.Repeat(textA, maxBlocks+1), reason: Unreadable, says: "more than 32"},
		"too long":     {text: join(textA, make([]byte, maxText)), reason: Unreadable, says: "more than 65536"},
		"nothing":      {reason: Missing, says: "is empty"},
		"garbage":      {text: []byte("hush"), reason: Unreadable, says: "is not PEM"},
		"a key":        {text: join(textA, encode(typeSEC1, []byte("hush"))), reason: Unreadable, says: `"EC PRIVATE KEY" (number 2)`},
		"no DER":       {text: join(textA, encode(typeCertificate, []byte("hush"))), reason: Unreadable, says: "number 2"},
		"huge key":     {text: Chain{slow}.PEM(), reason: Unsupported, says: "RSA key of 16385 bits"},
		"cut off":      {text: join(textA, textB[:len(textB)-40]), reason: Unreadable, says: "1 of its 2 PEM blocks"},
		"not base64":   {text: join(bytes.Replace(textA, []byte("MI"), []byte("!!"), 1), textB), reason: Unreadable, says: "1 of its 2 PEM blocks"},
		"after no end": {text: join([]byte("-----BEGIN CERTIFICATE-----\n"), textA), reason: Unreadable, says: "1 of its 2 PEM blocks"},
	} {
		got, err := ReadCertificates(tt.text)
		if tt.reason != "" {
			assertError(t, err, tt.reason, tt.says)
			assert.NotContains(t, err.Error(), "hush", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, tt.want.PEM(), Chain(got).PEM(), name)
	}
}

func TestNewChain(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	mesh := newMesh(t, root, grant)
	workload, _ := newWorkload(t, mesh, reviews)
	others := append(slices.Clone(workload), newRoot(t).chain[0], newRoot(t).chain[0], impostor(t, root))
	for range 20 {
		mathrand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		chain, err := NewChain(workload[0], others...)
		require.NoError(t, err)
		assert.Equal(t, workload.PEM(), chain.PEM())
		assert.Equal(t, root.chain[0], chain.Root())
	}
	chain, err := NewChain(root.chain[0])
	require.NoError(t, err)
	assert.Len(t, chain, 1)

	_, err = NewChain(workload[0], root.chain[0])
	assertError(t, err, Incomplete, "whose certificate is missing; add it")
	assert.ErrorContains(t, err, "CN=mesh,O=Istio")
	_, err = NewChain(workload[0], mesh.chain[0])
	assertError(t, err, Incomplete, "CN=root,O=gloo-mesh")
	_, err = NewChain(workload[0], mesh.chain[0], impostor(t, root))
	assertError(t, err, BadSignature, "is not signed by the key of")
	assert.Nil(t, Chain{}.Root())
}

// TestChainsThatLoop: two CAs that signed each other have no root.
func TestChainsThatLoop(t *testing.T) {
	t.Parallel()
	a, b := newRoot(t), newRoot(t)
	cross := func(subject, by *Authority) *x509.Certificate {
		return sign(t, by, subject.key.Public(), &x509.Certificate{
			RawSubject: subject.chain[0].RawSubject, SubjectKeyId: subject.chain[0].SubjectKeyId, IsCA: true, BasicConstraintsValid: true,
		})
	}
	ab, ba := cross(a, b), cross(b, a)
	_, err := NewChain(ab, ba, ab)
	assertError(t, err, Unsupported, "has no root")
	chain, err := NewChain(ab, ba, ab, b.chain[0])
	require.NoError(t, err)
	assert.Equal(t, Chain{ab, b.chain[0]}.PEM(), chain.PEM(), "a root is preferred")
}

// TestUnion is a set's: commutative, associative, idempotent, and of the same bytes however it was made.
func TestUnion(t *testing.T) {
	t.Parallel()
	var certs []*x509.Certificate
	for range 6 {
		certs = append(certs, newRoot(t).chain[0])
	}
	random := mathrand.New(mathrand.NewPCG(waittest.Seed(t), 0))
	some := func() Bundle {
		var chosen []*x509.Certificate
		for range random.IntN(5) {
			chosen = append(chosen, certs[random.IntN(len(certs))])
		}
		return NewBundle(chosen...)
	}
	for range 200 {
		a, b, c := some(), some(), some()
		both := a.Union(b)
		assert.Equal(t, both.PEM(), b.Union(a).PEM())
		assert.Equal(t, a.PEM(), a.Union(a).PEM())
		assert.Equal(t, a.PEM(), a.Union(Bundle{}).PEM())
		assert.Equal(t, both.Union(c).PEM(), a.Union(b.Union(c)).PEM())
		assert.Equal(t, both.Union(c).PEM(), a.Union(b, c).PEM())
		assert.True(t, both.Covers(a) && both.Covers(b))
		assert.Equal(t, a.Equal(b), bytes.Equal(a.PEM(), b.PEM()))
		assert.Equal(t, b.Covers(a), both.Equal(b))
		assert.Empty(t, both.Without(both.Certificates()...).Certificates())
		assert.True(t, a.Covers(both.Without(b.Certificates()...)))
		assert.True(t, slices.IsSorted(both.Fingerprints()))
		assert.Len(t, both.Fingerprints(), len(both.Certificates()))
		if len(a.Certificates()) > 0 {
			again, err := ReadBundle(a.PEM())
			require.NoError(t, err)
			assert.True(t, a.Equal(again))
		}
	}
	_, err := ReadBundle(nil)
	assertError(t, err, Missing, "bundle of roots is empty")
}

// TestBundlesDoNotShare: a change of what was returned does not reach the set.
func TestBundlesDoNotShare(t *testing.T) {
	t.Parallel()
	b := NewBundle(newRoot(t).chain[0], newRoot(t).chain[0])
	before := b.PEM()
	b.Certificates()[0] = nil
	b.Without(b.Certificates()[0])
	b.Union(NewBundle(newRoot(t).chain[0]))
	assert.Equal(t, before, b.PEM())
}
