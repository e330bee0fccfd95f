package vaulttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CA is a certification authority in Vault.
type CA struct {
	Certificate *x509.Certificate
	// above are the certificates of those that signed it, up to the root.
	above []*x509.Certificate
	key   crypto.Signer
}

// NewRoot makes a CA that signs itself.
func NewRoot(t testing.TB, name string, from time.Time, life time.Duration) *CA {
	t.Helper()
	return newCA(t, name, from, life, nil)
}

// NewCA makes a CA that another one signs.
func (c *CA) NewCA(t testing.TB, name string, from time.Time, life time.Duration) *CA {
	t.Helper()
	return newCA(t, name, from, life, c)
}

func newCA(t testing.TB, name string, from time.Time, life time.Duration, parent *CA) *CA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	out := &CA{key: key}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, SubjectKeyId: []byte(name), NotBefore: from, NotAfter: from.Add(life),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLen: -1,
	}
	signer, by := crypto.Signer(key), template
	if parent != nil {
		out.above = append([]*x509.Certificate{parent.Certificate}, parent.above...)
		signer, by = parent.key, parent.Certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), signer)
	require.NoError(t, err)
	out.Certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return out
}

// WithoutRoot is the CA as it is in a Vault that was not given the certificates above it.
func (c *CA) WithoutRoot() *CA { return &CA{Certificate: c.Certificate, key: c.key} }

// Root is the certificate at the end of its chain.
func (c *CA) Root() *x509.Certificate {
	if len(c.above) == 0 {
		return c.Certificate
	}
	return c.above[len(c.above)-1]
}

// Fingerprint is that of its root.
func (c *CA) Fingerprint() string {
	sum := sha256.Sum256(c.Root().Raw)
	return hex.EncodeToString(sum[:])
}

func serial() *big.Int {
	out, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err)
	}
	return out
}

func encode(cert *x509.Certificate) string {
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
}

// PEM is its certificate.
func (c *CA) PEM() string { return encode(c.Certificate) }

func (c *CA) chainPEMs() []string {
	out := []string{c.PEM()}
	for _, cert := range c.above {
		out = append(out, encode(cert))
	}
	return out
}

func (c *CA) chainPEM() string { return strings.Join(c.chainPEMs(), "\n") }

// Signing is what is about to be signed.
type Signing struct {
	Template *x509.Certificate
	Public   crypto.PublicKey
	By       *CA
}

// sign is sign-intermediate. What is not in the body is not taken from the request, as without use_csr_values.
func (s *Server) sign(w http.ResponseWriter, r *http.Request, ca *CA) {
	var body struct {
		CSR           string
		CommonName    string `json:"common_name"`
		ExcludeCN     bool   `json:"exclude_cn_from_sans"`
		Organization  []string
		URISANs       []string `json:"uri_sans"`
		AltNames      string   `json:"alt_names"`
		TTL           string
		MaxPathLength *int     `json:"max_path_length"`
		URIDomains    []string `json:"permitted_uri_domains"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		Refuse(w, http.StatusBadRequest, "failed to parse JSON input")
		return
	}
	block, _ := pem.Decode([]byte(body.CSR))
	ttl, err := time.ParseDuration(body.TTL)
	if block == nil || err != nil {
		Refuse(w, http.StatusBadRequest, "csr contains no data or ttl is wrong")
		return
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		Refuse(w, http.StatusBadRequest, "certificate request could not be parsed")
		return
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: body.CommonName, Organization: body.Organization},
		NotBefore: now.Add(-30 * time.Second), NotAfter: now.Add(ttl), SubjectKeyId: []byte(body.CommonName),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLen: -1,
		PermittedURIDomains: body.URIDomains, PermittedDNSDomainsCritical: true,
	}
	if body.MaxPathLength != nil {
		template.MaxPathLen, template.MaxPathLenZero = *body.MaxPathLength, *body.MaxPathLength == 0
	}
	for _, text := range body.URISANs {
		if uri, err := url.Parse(text); err == nil {
			template.URIs = append(template.URIs, uri)
		}
	}
	if body.AltNames != "" {
		template.DNSNames = strings.Split(body.AltNames, ",")
	}
	if !body.ExcludeCN {
		template.DNSNames = append(template.DNSNames, body.CommonName)
	}
	signing := &Signing{Template: template, Public: csr.PublicKey, By: ca}
	if s.change != nil {
		s.change(signing)
	}
	der, err := x509.CreateCertificate(rand.Reader, signing.Template, signing.By.Certificate, signing.Public, signing.By.key)
	if err != nil {
		Refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		Refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, map[string]any{"data": map[string]any{
		"certificate": encode(cert), "issuing_ca": signing.By.PEM(), "ca_chain": append([]string{encode(cert)}, signing.By.chainPEMs()...),
		"serial_number": cert.SerialNumber.String(), "expiration": cert.NotAfter.Unix(),
	}})
}
