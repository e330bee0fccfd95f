package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// Usage is what a certificate is for.
type Usage int

// The usages.
const (
	// AnyUsage does not matter.
	AnyUsage Usage = iota
	// ForCA signs the certificates of workloads, as istiod's does.
	ForCA
	// ForWorkload is both ends of mutual TLS, as a sidecar is.
	ForWorkload
)

// Want is what a chain is verified for. The zero Want asks only for trust.
type Want struct {
	// Usage of the first certificate.
	Usage Usage
	// Hosts are the SPIFFE identities and DNS names of whom one must be in the first certificate; empty for anybody.
	Hosts []string
	// TrustDomains are those that all its SPIFFE identities must be of, of which there must be one; empty for any.
	TrustDomains []string
	// Key is the private key of the first certificate; not checked if zero.
	Key Key
}

// Verify says why a chain is not to be trusted: nil, or an *Error. The chain starts with the certificate in question;
// its root may be left out. It passes only what crypto/x509 passes, and not all of that: see names.go.
//
// A chain that is wrong in several ways gets the reason that explains the others: it is put together wrongly, its root is
// not trusted, it is not valid at the time, then what it is not made for.
func Verify(chain Chain, roots Bundle, at time.Time, want Want) error {
	if len(chain) == 0 {
		return &Error{Object: "chain", Reason: Missing, Problem: "has no certificate", Next: "put the certificate there"}
	}
	if at.IsZero() { // crypto/x509 would look at the clock
		return &Error{Object: name(chain[0]), Reason: Unsupported, Problem: "cannot be verified at no time", Next: "report it: the caller passes none"}
	}
	if err := chain.checkLinks(); err != nil {
		return err
	}
	chain, err := chain.anchor(roots)
	if err != nil {
		return err
	}
	if !want.Key.IsZero() {
		if err := want.Key.Check(chain[0]); err != nil {
			return err
		}
	}
	for _, check := range []func() error{
		func() error { return checkTimes(chain, at) },
		func() error { return chain.checkCAs(want.Usage) },
		func() error { return checkWanted(chain[0], want) },
		func() error { return chain.checkConstraints() },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return chain.checkX509(roots, at, want.Usage)
}

// anchor is the chain up to and with the first certificate that is trusted. A root that was renewed with its old key, as
// cert-manager does by default, is another certificate, and still the signer of what the old one signed.
func (c Chain) anchor(roots Bundle) (Chain, error) {
	for i, cert := range c {
		if roots.Contains(cert) {
			return c[:i+1], nil
		}
		if root, err := findIssuer(cert, roots.certs); err == nil && !selfSigned(cert) {
			return append(slices.Clone(c[:i+1]), root), nil
		}
	}
	last := c.Root()
	for _, root := range roots.certs {
		if !selfSigned(last) && len(root.SubjectKeyId) > 0 && bytes.Equal(last.AuthorityKeyId, root.SubjectKeyId) && bytes.Equal(last.RawIssuer, root.RawSubject) {
			return nil, badSignature(last, root)
		}
	}
	return nil, unknownRoot(c, roots)
}

func unknownRoot(chain Chain, roots Bundle) error {
	last := chain.Root()
	e := &Error{Object: name(chain[0]), Reason: UnknownRoot, Want: roots.Fingerprints()}
	if selfSigned(last) {
		e.Have = []string{Fingerprint(last)}
		e.Problem = "has the root " + list(e.Have)
	} else {
		e.Problem = "has a root that is not in its chain, " + shown(last.Issuer.String())
	}
	e.Problem += ", which is not trusted; trusted are " + list(e.Want)
	e.Next = "add its root to those that are trusted, or have it signed below one of them"
	for _, root := range roots.certs {
		if bytes.Equal(root.RawSubject, last.RawIssuer) {
			e.Next += "; a trusted root has the same name, but another key"
			break
		}
	}
	return e
}

// checkCAs checks that all but the first may sign, and how many stand below each.
func (c Chain) checkCAs(usage Usage) error {
	below := 0 // CAs below
	for i, cert := range c {
		if i > 0 || usage == ForCA {
			if err := checkCA(cert); err != nil {
				return err
			}
			if err := checkPathLength(cert, below); err != nil {
				return err
			}
			below++
		}
	}
	return nil
}

// checkX509 has the last word, so that nothing passes here that it refuses.
func (c Chain) checkX509(roots Bundle, at time.Time, usage Usage) error {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	if usage == ForWorkload {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	above := NewBundle(c[1:]...).pool()
	for _, u := range usages { // each must pass; in one call, one would do
		_, err := c[0].Verify(x509.VerifyOptions{Roots: roots.pool(), Intermediates: above, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{u}})
		if err != nil {
			return &Error{Object: name(c[0]), Reason: x509Reason(err), Problem: "is not valid", Err: err, Next: "have it issued again"}
		}
	}
	return nil
}

// x509Reason is the reason of an error that the checks before do not find.
func x509Reason(err error) Reason {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) {
		return Failed
	}
	switch invalid.Reason {
	case x509.CANotAuthorizedForThisName:
		return NameNotPermitted
	case x509.IncompatibleUsage:
		return WrongUsage
	default:
		return Failed
	}
}
