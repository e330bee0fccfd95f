package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds are well-formed texts of all kinds, and some damage.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	root := newRoot(f)
	mesh := newMesh(f, root, grant)
	workload, key := newWorkload(f, mesh, reviews)
	req, err := NewRequest(rand.Reader, key, "Istio", []string{istiod})
	require.NoError(f, err)
	out := [][]byte{
		nil, []byte("-----BEGIN CERTIFICATE-----\n"), []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
		[]byte("-----BEGIN PRIVATE KEY-----\nA: b\n\nMIIB\n-----END PRIVATE KEY-----\n"), encode(typeParameters, nil),
		root.chain.PEM(), workload.PEM(), bytes.ReplaceAll(workload.PEM(), []byte("\n"), []byte("\r\n")), append(req, root.chain.PEM()...),
		req, pemOf(f, key), pemOf(f, rsaKey()),
	}
	for _, text := range out {
		out = append(out, text[:len(text)/2])
	}
	return out
}

// sayWhy fails if an error is none of this package, or quotes what it read.
func sayWhy(t *testing.T, err error, text []byte) {
	t.Helper()
	if ReasonOf(err) == "" {
		t.Fatalf("an error without a reason: %v", err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if len(line) > 50 && strings.Contains(err.Error(), line) {
			t.Fatalf("the error quotes what it read: %v", err)
		}
	}
}

func FuzzReadKey(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ReadKey(text)
		if err != nil {
			sayWhy(t, err, text)
			return
		}
		written, err := key.PEM()
		require.NoError(t, err)
		again, err := ReadKey(written)
		require.NoError(t, err)
		require.True(t, samePublic(key.Public(), again.Public()))
	})
}

func FuzzReadRequest(f *testing.F) {
	root := newRoot(f)
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		req, err := ReadRequest(text)
		if err != nil {
			sayWhy(t, err, text)
			return
		}
		// Whatever can be read can be signed, if it is granted, and only for this key and these names.
		issued, err := root.Sign(rand.Reader, now, req, Grant{Subject: grant.Subject, Hosts: req.Hosts(), Life: meshLife})
		require.NoError(t, err)
		cert := issued.Chain[0]
		require.Equal(t, req.Hosts(), hostsOf(cert.URIs, cert.DNSNames))
		require.True(t, samePublic(req.Public(), cert.PublicKey))
		_, err = root.Sign(rand.Reader, now, req, Grant{Subject: grant.Subject, Hosts: []string{"spiffe://nobody.example/a"}, Life: meshLife})
		require.Equal(t, NotAllowed, ReasonOf(err))
	})
}

func FuzzReadBundle(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed, []byte{})
		f.Add(seed, newRoot(f).chain.PEM())
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a, err := ReadBundle(one)
		if err != nil {
			sayWhy(t, err, one)
			return
		}
		if again, err := ReadBundle(a.PEM()); err == nil { // it may exceed the bound once line ends are added
			require.True(t, a.Equal(again))
		}
		b, _ := ReadBundle(two)
		require.Equal(t, a.Union(b).PEM(), b.Union(a).PEM())
		certs := a.Certificates()
		if chain, err := NewChain(certs[0], certs...); err != nil {
			sayWhy(t, err, one)
		} else {
			// Nothing passes that Go would refuse, and nothing but an Error comes out.
			err := Verify(chain, a, now, Want{Usage: ForCA})
			_, goErr := certs[0].Verify(verifyOptions(a))
			if err == nil {
				require.NoError(t, goErr)
			} else {
				sayWhy(t, err, one)
			}
		}
	})
}

func FuzzReadSecret(f *testing.F) {
	root := newRoot(f)
	data, err := CACerts{Authority: newMesh(f, root, grant), Roots: NewBundle(root.chain...)}.Data()
	require.NoError(f, err)
	for form := range uint8(3) {
		f.Add(form, data[CACertKey], data[CAKeyKey], data[CAChainKey], data[RootCertKey])
		f.Add(form, data[RootCertKey], pemOf(f, root.key), []byte{}, data[RootCertKey])
		f.Add(form, []byte("a"), []byte("b"), []byte("c"), []byte("d"))
	}
	f.Fuzz(func(t *testing.T, form uint8, cert, key, chain, roots []byte) {
		secret := []map[string][]byte{
			{CACertKey: cert, CAKeyKey: key, CAChainKey: chain, RootCertKey: roots},
			{TLSCertKey: cert, TLSKeyKey: key, TLSRootKey: roots},
			{RootCertKey: cert, RootKeyKey: key},
		}[form%3]
		authority, err := ReadAuthority(secret)
		if err != nil {
			sayWhy(t, err, key)
		} else {
			require.NoError(t, authority.key.Check(authority.chain[0]))
		}
		cacerts, err := ReadCACerts(secret)
		if err != nil {
			sayWhy(t, err, key)
			return
		}
		written, err := cacerts.Data()
		require.NoError(t, err)
		if again, err := ReadCACerts(written); err == nil { // see FuzzReadBundle
			require.True(t, again.Roots.Equal(cacerts.Roots))
		}
	})
}

func verifyOptions(roots Bundle) x509.VerifyOptions {
	return x509.VerifyOptions{Roots: roots.pool(), Intermediates: roots.pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
}
