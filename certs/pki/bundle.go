package pki

import (
	"bytes"
	"crypto/x509"
	"slices"
)

// Bundle is a set of roots. The same set always has the same bytes, whatever it was made from: istiod compares bytes, and
// takes no new intermediate while they differ from those it started with. The zero Bundle is empty.
type Bundle struct {
	// certs are ascending by DER, without duplicates.
	certs []*x509.Certificate
}

// NewBundle makes a set of certificates.
func NewBundle(certs ...*x509.Certificate) Bundle {
	certs = slices.Clone(certs)
	slices.SortFunc(certs, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	return Bundle{slices.CompactFunc(certs, (*x509.Certificate).Equal)}
}

// ReadBundle reads a PEM text of at most 64 KiB and 32 certificates, at least one.
func ReadBundle(text []byte) (Bundle, error) {
	certs, err := readCertificates("bundle of roots", text)
	return NewBundle(certs...), err
}

// Union is the set of all their roots.
func (b Bundle) Union(others ...Bundle) Bundle {
	certs := slices.Clone(b.certs)
	for _, other := range others {
		certs = append(certs, other.certs...)
	}
	return NewBundle(certs...)
}

// Without is the set without some roots.
func (b Bundle) Without(certs ...*x509.Certificate) Bundle {
	return Bundle{slices.DeleteFunc(slices.Clone(b.certs), func(cert *x509.Certificate) bool { return contains(certs, cert) })}
}

// Contains reports whether a certificate is in the set.
func (b Bundle) Contains(cert *x509.Certificate) bool { return contains(b.certs, cert) }

// Covers reports whether the set has every root of another. Istiod takes new roots without a restart only if it has
// ISTIO_MULTIROOT_MESH, and the new set covers the old one or the old one the new (pilot/pkg/bootstrap, handleEvent).
func (b Bundle) Covers(other Bundle) bool {
	return !slices.ContainsFunc(other.certs, func(cert *x509.Certificate) bool { return !b.Contains(cert) })
}

// Equal reports whether two sets are the same.
func (b Bundle) Equal(other Bundle) bool { return b.Covers(other) && other.Covers(b) }

// Certificates are the roots in the order of the set.
func (b Bundle) Certificates() []*x509.Certificate { return slices.Clone(b.certs) }

// Fingerprints are those of the roots, ascending, as in the status of a Mesh.
func (b Bundle) Fingerprints() []string {
	out := make([]string, 0, len(b.certs))
	for _, cert := range b.certs {
		out = append(out, Fingerprint(cert))
	}
	slices.Sort(out)
	return out
}

// PEM is the set as text.
func (b Bundle) PEM() []byte { return Chain(b.certs).PEM() }

// pemFrom is the set as text, with one of its roots before the others.
func (b Bundle) pemFrom(first *x509.Certificate) []byte {
	return append(Chain{first}.PEM(), b.Without(first).PEM()...)
}

// pool is the set for crypto/x509. It is never nil, which would mean the roots of the system.
func (b Bundle) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range b.certs {
		pool.AddCert(cert)
	}
	return pool
}
