package pki

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, key := range []Key{newKey(t), rsaKey()} {
		text, err := NewRequest(rand.Reader, key, "Istio", []string{istiod, "istiod.istio-system.svc", istiod})
		require.NoError(t, err)
		req, err := ReadRequest(text)
		require.NoError(t, err)
		assert.Equal(t, []string{"istiod.istio-system.svc", istiod}, req.Hosts())
		assert.True(t, samePublic(key.Public(), req.Public()))
	}
}

// request makes any request, also a wrong one.
func request(t testing.TB, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	require.NoError(t, err)
	return encode(typeRequest, der)
}

func TestReadRequest(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	uri := func(s string) *x509.CertificateRequest {
		u, err := url.Parse(s)
		require.NoError(t, err)
		return &x509.CertificateRequest{URIs: []*url.URL{u}}
	}
	good := request(t, key, uri(istiod))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	many := &x509.CertificateRequest{}
	for i := range maxHosts + 1 {
		many.DNSNames = append(many.DNSNames, fmt.Sprintf("a%d.example", i))
	}
	forged := func() []byte {
		blocks, err := decode("", good)
		require.NoError(t, err)
		der := bytes.Replace(blocks[0].Bytes, []byte("sa/istiod"), []byte("sa/gloomy"), 1)
		require.NotEqual(t, blocks[0].Bytes, der)
		return encode(typeRequest, der)
	}
	sha1 := uri(istiod)
	sha1.SignatureAlgorithm = x509.ECDSAWithSHA1
	for name, tt := range map[string]struct {
		text   []byte
		reason Reason
		says   string
	}{
		"good":              {text: good},
		"nothing":           {nil, Missing, "is empty"},
		"two":               {append(bytes.Clone(good), good...), Unreadable, "has 2 PEM blocks"},
		"a certificate":     {newRoot(t).chain.PEM(), Unreadable, `type "CERTIFICATE"`},
		"garbage":           {encode(typeRequest, []byte("hush")), Unreadable, "is not PKCS #10"},
		"too long":          {append(bytes.Clone(good), make([]byte, maxText)...), Unreadable, "more than 65536 bytes"},
		"forged":            {forged(), BadSignature, "not signed by its own key"},
		"SHA-1":             {request(t, key, sha1), Unsupported, "ECDSA-SHA1"},
		"Ed25519":           {request(t, ed, uri(istiod)), Unsupported, "neither RSA nor ECDSA"},
		"P-521":             {request(t, ecdsaKey(t, elliptic.P521()), uri(istiod)), Unsupported, "another curve"},
		"no name":           {request(t, key, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "istiod"}}), Missing, "names nobody"},
		"many names":        {request(t, key, many), Unreadable, "has 33 names"},
		"long name":         {request(t, key, uri(istiod+strings.Repeat("a", maxSPIFFE))), Unreadable, "neither a SPIFFE identity"},
		"web address":       {request(t, key, uri("https://cluster.local/a")), Unreadable, "neither a SPIFFE identity"},
		"port":              {request(t, key, uri("spiffe://cluster.local:80/ns/a")), Unreadable, "neither a SPIFFE identity"},
		"user":              {request(t, key, uri("spiffe://a@cluster.local/ns/a")), Unreadable, "neither a SPIFFE identity"},
		"query":             {request(t, key, uri("spiffe://cluster.local/ns/a?b=c")), Unreadable, "neither a SPIFFE identity"},
		"parent":            {request(t, key, uri("spiffe://cluster.local/ns/../a")), Unreadable, "neither a SPIFFE identity"},
		"trust domain only": {request(t, key, uri("spiffe://cluster.local")), Unreadable, "neither a SPIFFE identity"},
		"escaped":           {request(t, key, uri("spiffe://cluster.local/ns/%61")), Unreadable, "neither a SPIFFE identity"},
		"wildcard":          {request(t, key, &x509.CertificateRequest{DNSNames: []string{"*.example"}}), Unreadable, "neither a SPIFFE identity"},
		"address":           {request(t, key, &x509.CertificateRequest{IPAddresses: []net.IP{{127, 0, 0, 1}}}), Unreadable, "IP or e-mail"},
		"e-mail":            {request(t, key, &x509.CertificateRequest{EmailAddresses: []string{"a@b.example"}}), Unreadable, "IP or e-mail"},
	} {
		req, err := ReadRequest(tt.text)
		if tt.reason == "" {
			require.NoError(t, err, name)
			assert.Equal(t, []string{istiod}, req.Hosts())
			continue
		}
		assert.Nil(t, req, name)
		assertError(t, err, tt.reason, tt.says)
		assert.NotContains(t, err.Error(), "hush", name)
	}
}

// TestRequestedExtensionsAreIgnored: a cluster cannot make itself a root by asking for it.
func TestRequestedExtensionsAreIgnored(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(istiod)
	require.NoError(t, err)
	anyPath, err := asn1.Marshal(struct {
		CA  bool
		Max int
	}{true, 9})
	require.NoError(t, err)
	key := newKey(t)
	req, err := ReadRequest(request(t, key, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{"root"}, CommonName: "root"}, URIs: []*url.URL{u},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: anyPath},
			{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: []byte{5, 0}},
		},
	}))
	require.NoError(t, err)
	issued, err := newRoot(t).Sign(rand.Reader, now, req, grant)
	require.NoError(t, err)
	cert := issued.Chain[0]
	assert.Equal(t, 0, cert.MaxPathLen)
	assert.Equal(t, "mesh", cert.Subject.CommonName)
	for _, extension := range cert.Extensions {
		assert.NotEqual(t, "1.2.3.4", extension.Id.String())
	}
	assert.True(t, samePublic(key.Public(), cert.PublicKey), "for the request's own key")
}
