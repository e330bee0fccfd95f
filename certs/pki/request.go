package pki

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"slices"
)

// requestObject is how errors call a request.
const requestObject = "certificate signing request"

// Request is a certificate signing request whose signature was verified. Only ReadRequest makes one.
type Request struct {
	hosts  []string
	public crypto.PublicKey
}

// Hosts are the SPIFFE identities and DNS names that are asked for, ascending; at least one.
func (r *Request) Hosts() []string { return slices.Clone(r.hosts) }

// Named is the request for the same key, and for names that the signer chooses.
func (r *Request) Named(hosts ...string) *Request {
	out := *r
	out.hosts = sorted(hosts)
	return &out
}

// Public is the key that signed the request. The certificate is for this key.
func (r *Request) Public() crypto.PublicKey { return r.public }

// NewRequest makes a PEM encoded PKCS #10 request for SPIFFE identities and DNS names. The organisation is for people who
// read the request: the signer chooses the certificate's own.
func NewRequest(random io.Reader, key Key, organization string, hosts []string) ([]byte, error) {
	if key.IsZero() {
		return nil, noKey()
	}
	names, err := parseHosts(requestObject, hosts)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(random, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{organization}},
		URIs:    names.uris, DNSNames: names.dns,
	}, key)
	if err != nil {
		return nil, notMade(requestObject, err)
	}
	return encode(typeRequest, der), nil
}

// signatures are the algorithms that are taken; crypto/x509 would take SHA-1 in requests.
var signatures = []x509.SignatureAlgorithm{
	x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
	x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
	x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
}

// ReadRequest reads what a cluster sent and trusts none of it: one PEM block of bounded size, a key and a signature of a
// known kind, a few well-formed names, and the signature is the key's. Other extensions that the request asks for are
// ignored.
func ReadRequest(text []byte) (*Request, error) {
	blocks, err := decode(requestObject, text)
	if err != nil {
		return nil, err
	}
	bad := func(reason Reason, problem string) error {
		return &Error{Object: requestObject, Reason: reason, Problem: problem, Next: "have the cluster's agent make a new request"}
	}
	if len(blocks) != 1 || blocks[0].Type != typeRequest {
		return nil, bad(Unreadable, fmt.Sprintf("has %d PEM blocks, the first of type %s", len(blocks), shown(blocks[0].Type)))
	}
	csr, err := x509.ParseCertificateRequest(blocks[0].Bytes)
	if err != nil {
		return nil, bad(Unreadable, "is not PKCS #10")
	}
	if err := checkPublic(requestObject, csr.PublicKey); err != nil {
		return nil, err
	}
	if !slices.Contains(signatures, csr.SignatureAlgorithm) {
		return nil, bad(Unsupported, "is signed with "+csr.SignatureAlgorithm.String())
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, bad(BadSignature, "is not signed by its own key")
	}
	if len(csr.EmailAddresses)+len(csr.IPAddresses) > 0 {
		return nil, bad(Unreadable, "asks for IP or e-mail addresses")
	}
	hosts := hostsOf(csr.URIs, csr.DNSNames)
	if _, err := parseHosts(requestObject, hosts); err != nil {
		return nil, err
	}
	return &Request{hosts: hosts, public: csr.PublicKey}, nil
}
