package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"
)

// rootPathLength is how many CAs may stand below a root that is made here: the intermediates of meshes. They, in turn,
// have none below them.
const rootPathLength = 1

// maxName is in bytes, of each part of a subject (X.520, upper bounds).
const maxName = 64

// Subject says whose a certificate is. Its serial number attribute is added: it tells apart the roots that follow one
// another, and an intermediate from a root of the same name.
type Subject struct {
	// Organization is required: istiod reads it.
	Organization string
	// CommonName is for people.
	CommonName string
}

// Authority is a CA that can sign: a key, and the chain of its certificate up to the root.
type Authority struct {
	chain Chain
	key   Key
}

// NewAuthority checks that the key is the first certificate's, that all certificates are CAs, and that the last one is a
// root. It does not check times: Sign does.
func NewAuthority(chain Chain, key Key) (*Authority, error) {
	if len(chain) == 0 {
		return nil, &Error{Object: "authority", Reason: Missing, Problem: "has no certificate", Next: "give it one"}
	}
	if err := key.Check(chain[0]); err != nil {
		return nil, err
	}
	if err := checkPublic(name(chain[0]), chain[0].PublicKey); err != nil {
		return nil, err
	}
	for _, cert := range chain {
		if err := checkCA(cert); err != nil {
			return nil, err
		}
	}
	if err := chain.checkLinks(); err != nil {
		return nil, err
	}
	if !selfSigned(chain.Root()) {
		return nil, incomplete(chain.Root())
	}
	return &Authority{chain: chain, key: key}, nil
}

// Chain is the authority's own certificate first, and its root last. They may be the same.
func (a *Authority) Chain() Chain { return slices.Clone(a.chain) }

// NewRoot makes a self-signed root for a key.
func NewRoot(random io.Reader, now time.Time, key Key, subject Subject, life Life) (*Authority, error) {
	if key.IsZero() {
		return nil, noKey()
	}
	span, err := life.within("root certificate", now, nil)
	if err != nil {
		return nil, err
	}
	template, err := caTemplate(random, key.Public(), subject, span, rootPathLength)
	if err != nil {
		return nil, err
	}
	template.AuthorityKeyId = template.SubjectKeyId
	cert, err := create(random, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return NewAuthority(Chain{cert}, key)
}

// Grant is what a requester may have.
type Grant struct {
	// Subject of the certificate; that in the request is ignored.
	Subject Subject
	// Hosts are the SPIFFE identities and DNS names that the requester owns. A request for any other is refused.
	Hosts []string
	// Life of the certificate, cut to the authority's.
	Life Life
	// PathLength is how many CAs may stand below it; 0 is right for a mesh's intermediate.
	PathLength int
	// TrustDomains restrict the identities of the certificate and those below it (see Name constraints in the package's
	// comment); empty for no restriction.
	TrustDomains []string
}

// Issued is a signed certificate.
type Issued struct {
	// Chain is the certificate first, and its root last.
	Chain Chain
	// CutBy is the certificate of the chain that ends earlier than the life that was asked for, and to whose end the new
	// one was cut; nil if it was not. To get a longer life, renew CutBy first.
	CutBy *x509.Certificate
}

// Sign makes an intermediate CA certificate for the request's key and names, if the grant has these names.
func (a *Authority) Sign(random io.Reader, now time.Time, req *Request, grant Grant) (Issued, error) {
	return a.sign(random, now, req, grant, ForCA)
}

// SignLeaf makes a certificate for both ends of mutual TLS, by the same rules as Sign. It signs nothing: no CA stands below it,
// and a trust domain of the grant restricts only its own names.
func (a *Authority) SignLeaf(random io.Reader, now time.Time, req *Request, grant Grant) (Issued, error) {
	return a.sign(random, now, req, grant, ForWorkload)
}

func (a *Authority) sign(random io.Reader, now time.Time, req *Request, grant Grant, usage Usage) (Issued, error) {
	if err := a.permits(req, grant, usage); err != nil {
		return Issued{}, err
	}
	span, err := grant.Life.within(requestObject, now, a.chain)
	if err != nil {
		return Issued{}, err
	}
	template, err := grant.template(random, req.public, span, usage)
	if err != nil {
		return Issued{}, err
	}
	names, err := parseHosts(requestObject, req.hosts)
	if err != nil {
		return Issued{}, err
	}
	template.URIs, template.DNSNames = names.uris, names.dns
	cert, err := create(random, template, a.chain[0], req.public, a.key)
	if err != nil {
		return Issued{}, err
	}
	chain := append(Chain{cert}, a.chain...)
	if err := Verify(chain, NewBundle(chain.Root()), now, Want{Usage: usage, Hosts: req.hosts}); err != nil {
		return Issued{}, err
	}
	return Issued{Chain: chain, CutBy: span.cutBy}, nil
}

// permits says why a request is refused.
func (a *Authority) permits(req *Request, grant Grant, usage Usage) error {
	if more := without(req.hosts, grant.Hosts); len(more) > 0 || len(req.hosts) == 0 {
		return &Error{
			Object: requestObject, Reason: NotAllowed, Have: req.hosts, Want: sorted(grant.Hosts),
			Problem: "asks for " + list(more) + ", which the requester does not own; it owns " + list(sorted(grant.Hosts)),
			Next:    "ask only for the hosts in the spec of the IssuedCertificate",
		}
	}
	if samePublic(req.public, a.key.Public()) {
		return &Error{Object: requestObject, Reason: NotAllowed, Problem: "is for the signer's own key", Next: "have the cluster make a key of its own"}
	}
	for _, domain := range grant.TrustDomains {
		if !isTrustDomain(domain) {
			return &Error{
				Object: requestObject, Reason: Unsupported, Problem: "cannot be restricted to the trust domain " + shown(domain),
				Next: "use lower-case letters, digits, dots, dashes and underscores, as in cluster.local",
			}
		}
	}
	if err := checkTrustDomains(requestObject, req.hosts, grant.TrustDomains); err != nil {
		return err
	}
	cas := grant.PathLength // with the certificate itself
	switch {
	case grant.PathLength < 0:
		return &Error{Object: requestObject, Reason: Unsupported, Problem: "has a negative path length", Next: "use 0"}
	case usage == ForCA:
		cas++
	case grant.PathLength > 0:
		return &Error{Object: requestObject, Reason: Unsupported, Problem: "has CAs below a certificate that is none", Next: "use the path length 0"}
	}
	for below, cert := range a.chain {
		if err := checkPathLength(cert, below+cas); err != nil {
			return err
		}
	}
	return nil
}

// newTemplate has what a CA and a leaf have in common.
func newTemplate(random io.Reader, public crypto.PublicKey, subject Subject, span span) (*x509.Certificate, error) {
	if subject.Organization == "" || len(subject.Organization) > maxName || len(subject.CommonName) > maxName {
		return nil, &Error{
			Object: "subject " + shown(subject.Organization), Reason: Unsupported,
			Problem: fmt.Sprintf("is not usable: the organisation must have 1 to %d bytes and the common name at most %[1]d", maxName),
			Next:    "change orgName",
		}
	}
	serial, err := newSerial(random)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, notMade("certificate", err)
	}
	sum := sha256.Sum256(der)
	return &x509.Certificate{
		SerialNumber: serial,
		Subject: pkix.Name{
			Organization: []string{subject.Organization}, CommonName: subject.CommonName, SerialNumber: hex.EncodeToString(sum[:8]),
		},
		SubjectKeyId: sum[:20], // RFC 7093, section 2, method 4
		NotBefore:    span.notBefore, NotAfter: span.notAfter,
		BasicConstraintsValid: true,
	}, nil
}

// template is the certificate that is granted, without its names.
func (g *Grant) template(random io.Reader, public crypto.PublicKey, span span, usage Usage) (*x509.Certificate, error) {
	if usage == ForWorkload {
		return leafTemplate(random, public, g.Subject, span)
	}
	template, err := caTemplate(random, public, g.Subject, span, g.PathLength)
	if err != nil {
		return nil, err
	}
	template.PermittedURIDomains = sorted(g.TrustDomains)
	template.PermittedDNSDomainsCritical = true // of the whole extension, despite its name
	return template, nil
}

func caTemplate(random io.Reader, public crypto.PublicKey, subject Subject, span span, pathLength int) (*x509.Certificate, error) {
	template, err := newTemplate(random, public, subject, span)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.IsCA, template.MaxPathLen, template.MaxPathLenZero = true, pathLength, pathLength == 0
	return template, nil
}

func leafTemplate(random io.Reader, public crypto.PublicKey, subject Subject, span span) (*x509.Certificate, error) {
	template, err := newTemplate(random, public, subject, span)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if _, ok := public.(*rsa.PublicKey); ok { // for key exchange by RSA, which TLS 1.2 still has
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return template, nil
}

// newSerial draws 128 bits.
func newSerial(random io.Reader) (*big.Int, error) {
	serial, err := rand.Int(random, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, notMade("serial number", err)
	}
	if serial.Sign() == 0 {
		return nil, &Error{Object: "serial number", Reason: Failed, Problem: "is 0: the source of entropy is broken", Next: "use crypto/rand.Reader"}
	}
	return serial, nil
}

func create(random io.Reader, template, parent *x509.Certificate, public crypto.PublicKey, key Key) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(random, template, parent, public, key)
	if err != nil {
		return nil, notMade("certificate", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, notMade("certificate", err)
	}
	return cert, nil
}
