package pki

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
)

// maxChain is the length of a chain. A corporate PKI above a mesh has three or four.
const maxChain = 8

// Chain is a certificate, the one that signed it, and so on.
type Chain []*x509.Certificate

// Fingerprint is the SHA-256 of a certificate in hexadecimal digits, as in the status of a Mesh.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// ReadCertificates reads a PEM text of at most 64 KiB and 32 certificates, at least one. It keeps their order and drops
// repetitions.
func ReadCertificates(text []byte) ([]*x509.Certificate, error) {
	return readCertificates("certificates", text)
}

func readCertificates(object string, text []byte) ([]*x509.Certificate, error) {
	blocks, err := decode(object, text)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for i, block := range blocks {
		if block.Type != typeCertificate {
			return nil, &Error{
				Object: object, Reason: Unreadable, Problem: fmt.Sprintf("has a PEM block of type %s (number %d)", shown(block.Type), i+1),
				Next: "leave only certificates there",
			}
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &Error{
				Object: object, Reason: Unreadable, Problem: fmt.Sprintf("has a certificate that cannot be read (number %d)", i+1), Err: err,
				Next: "replace or remove it",
			}
		}
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			return nil, checkPublic(object, key) // to verify with it would take long
		}
		if !contains(certs, cert) {
			certs = append(certs, cert)
		}
	}
	return certs, nil
}

// NewChain orders the certificates from one to its root, which must be among them. Those that are not needed are left
// out. The error says which one is missing.
func NewChain(first *x509.Certificate, others ...*x509.Certificate) (Chain, error) {
	chain := Chain{first}
	for !selfSigned(chain.Root()) {
		issuer, err := findIssuer(chain.Root(), others)
		if err != nil {
			return nil, err
		}
		if contains(chain, issuer) || len(chain) == maxChain {
			return nil, &Error{
				Object: name(first), Reason: Unsupported, Problem: fmt.Sprintf("has no root within %d certificates", maxChain),
				Next: "leave only the certificates from it to one root",
			}
		}
		chain = append(chain, issuer)
	}
	return chain, nil
}

// findIssuer finds the certificate that signed another; roots come first, so that the chain is short. Of roots with the same key
// it is the first.
func findIssuer(cert *x509.Certificate, among []*x509.Certificate) (*x509.Certificate, error) {
	var found, sameName *x509.Certificate
	for _, candidate := range among {
		switch {
		case !bytes.Equal(cert.RawIssuer, candidate.RawSubject):
		case !signedBy(cert, candidate):
			sameName = candidate
		case found == nil || !selfSigned(found) && selfSigned(candidate):
			found = candidate
		}
	}
	switch {
	case found != nil:
		return found, nil
	case sameName != nil:
		return nil, badSignature(cert, sameName)
	}
	return nil, incomplete(cert)
}

// checkLinks checks that each certificate is signed by the next.
func (c Chain) checkLinks() error {
	for i, cert := range c[:len(c)-1] {
		if !bytes.Equal(cert.RawIssuer, c[i+1].RawSubject) {
			return incomplete(cert)
		}
		if !signedBy(cert, c[i+1]) {
			return badSignature(cert, c[i+1])
		}
	}
	return nil
}

// Root is the last certificate; nil if there is none.
func (c Chain) Root() *x509.Certificate {
	if len(c) == 0 {
		return nil
	}
	return c[len(c)-1]
}

// PEM is the certificates one after the other.
func (c Chain) PEM() []byte {
	var out []byte
	for _, cert := range c {
		out = append(out, encode(typeCertificate, cert.Raw)...)
	}
	return out
}

func contains(certs []*x509.Certificate, cert *x509.Certificate) bool {
	return slices.ContainsFunc(certs, cert.Equal)
}

// signedBy is about the signature only.
func signedBy(cert, signer *x509.Certificate) bool {
	return signer.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature) == nil
}

func selfSigned(cert *x509.Certificate) bool {
	return bytes.Equal(cert.RawIssuer, cert.RawSubject) && signedBy(cert, cert)
}

func incomplete(cert *x509.Certificate) error {
	issuer := shown(cert.Issuer.String())
	if len(cert.AuthorityKeyId) > 0 {
		issuer += fmt.Sprintf(" (key identifier %x)", cert.AuthorityKeyId)
	}
	return &Error{
		Object: name(cert), Reason: Incomplete, Problem: "is signed by " + issuer + ", whose certificate is missing",
		Next: "add it", Want: []string{cert.Issuer.String()},
	}
}

func badSignature(cert, signer *x509.Certificate) error {
	return &Error{
		Object: name(cert), Reason: BadSignature, Problem: "is not signed by the key of " + name(signer) + ", which has the name of its issuer",
		Next: "replace one of the two: the signer may have got a new key", Have: []string{Fingerprint(signer)},
	}
}

// checkCA checks that a certificate may sign others.
func checkCA(cert *x509.Certificate) error {
	var problem string
	switch {
	case !cert.BasicConstraintsValid || !cert.IsCA:
		problem = "is not a CA (basic constraints)"
	case cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageCertSign == 0:
		problem = "may not sign certificates (key usage)"
	default:
		return nil
	}
	return &Error{Object: name(cert), Reason: NotCA, Problem: problem, Next: "use a CA certificate (in cert-manager: isCA: true)"}
}

// checkPathLength checks that a CA permits so many CAs below it.
func checkPathLength(cert *x509.Certificate, below int) error {
	if !cert.BasicConstraintsValid || cert.MaxPathLen < 0 || below <= cert.MaxPathLen {
		return nil
	}
	return &Error{
		Object: name(cert), Reason: PathTooLong, Problem: fmt.Sprintf("permits %d CAs below it, but there are %d", cert.MaxPathLen, below),
		Next: "use a CA whose path length permits more, or sign with one that is closer to the root",
	}
}
