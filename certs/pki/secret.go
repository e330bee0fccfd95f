package pki

import (
	"crypto/x509"
	"slices"
	"strings"
)

// Keys in the data of Secrets.
const (
	// RootCertKey and RootKeyKey are those of a root's Secret, generated or the user's (behaviour.md, section 6.1).
	RootCertKey = "root-cert.pem"
	RootKeyKey  = "key.pem"
	// TLSCertKey, TLSKeyKey and TLSRootKey are those of a Secret of type kubernetes.io/tls, as cert-manager writes it.
	TLSCertKey = "tls.crt"
	TLSKeyKey  = "tls.key"
	TLSRootKey = "ca.crt"
	// CACertKey, CAKeyKey, CAChainKey and RootCertKey are those of istiod's Secret cacerts.
	CACertKey  = "ca-cert.pem"
	CAKeyKey   = "ca-key.pem"
	CAChainKey = "cert-chain.pem"
)

// format is one way in which a Secret has an authority.
type format struct {
	key string
	// certs are where its certificate and those above it may be; only the first is required.
	certs []string
}

// formats: istiod's cacerts comes first, because it has all keys of a root's Secret too.
var formats = []format{
	{CAKeyKey, []string{CACertKey, CAChainKey, RootCertKey}},
	{TLSKeyKey, []string{TLSCertKey, TLSRootKey}},
	{RootKeyKey, []string{RootCertKey}},
}

// ReadAuthority reads a CA from the data of a Secret: the user's or generated root (root-cert.pem, key.pem), what
// cert-manager writes (tls.crt, tls.key, ca.crt), or cacerts. The CA need not be a root itself, but its root must be
// there, too. If there are two forms in one Secret it is an error: which one would be meant?
func ReadAuthority(data map[string][]byte) (*Authority, error) {
	has := func(key string) bool { return len(data[key]) > 0 }
	var found []format
	for _, f := range formats {
		if has(f.key) && has(f.certs[0]) {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil, noAuthority(data)
	}
	if len(found) > 1 {
		return nil, &Error{
			Object: "Secret", Reason: Unsupported, Problem: "has two private keys, " + found[0].key + " and " + found[1].key,
			Next: "remove the one that is not meant, with its certificate",
		}
	}
	return found[0].read(data)
}

// noAuthority names only keys that a CA has: what else is in the Secret is nobody's business.
func noAuthority(data map[string][]byte) error {
	var known []string
	for _, f := range formats {
		for _, key := range append([]string{f.key}, f.certs...) {
			if len(data[key]) > 0 {
				known = append(known, key)
			}
		}
	}
	slices.Sort(known)
	problem := "has no CA"
	if known = slices.Compact(known); len(known) > 0 {
		problem += "; of one, it has " + list(known)
	}
	return &Error{
		Object: "Secret", Reason: Missing, Problem: problem,
		Next: "give it " + RootCertKey + " and " + RootKeyKey + ", or " + strings.Join([]string{TLSCertKey, TLSKeyKey, TLSRootKey}, ", "),
		Want: []string{RootCertKey, RootKeyKey},
	}
}

func (f format) read(data map[string][]byte) (*Authority, error) {
	key, err := readKey(f.key, data[f.key])
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	own := 0 // how many certificates the first text has
	for i, at := range f.certs {
		if i > 0 && len(data[at]) == 0 {
			continue
		}
		more, err := readCertificates(at, data[at])
		if err != nil {
			return nil, err
		}
		certs = append(certs, more...)
		if i == 0 {
			own = len(more)
		}
	}
	// The key's certificate is usually the first; in a bundle of roots it may be another.
	first := max(0, slices.IndexFunc(certs[:own], func(cert *x509.Certificate) bool { return key.Check(cert) == nil }))
	if err := key.Check(certs[first]); err != nil {
		return nil, err
	}
	chain, err := NewChain(certs[first], certs...)
	if err != nil {
		return nil, err
	}
	return NewAuthority(chain, key)
}

// RootSecret is the data of a generated root's Secret. It has the private key.
func (a *Authority) RootSecret() (map[string][]byte, error) {
	key, err := a.key.PEM()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{RootCertKey: a.chain.PEM(), RootKeyKey: key}, nil
}

// CACerts is istiod's Secret cacerts.
type CACerts struct {
	// Authority is the mesh's intermediate.
	Authority *Authority
	// Roots are those that the mesh's workloads trust; they must include one that the intermediate leads to.
	Roots Bundle
	// SignerFirst writes the root of Authority before the other Roots, so that root-cert.pem changes with it. An istiod with
	// ISTIO_MULTIROOT_MESH then has workloads ask for new certificates at once; one without takes a new intermediate only
	// while root-cert.pem stays as it is (pilot/pkg/bootstrap, handleEvent). ReadCACerts finds it out from the order.
	SignerFirst bool
}

// Data is the data of the Secret. It has the private key. Workloads present cert-chain.pem after their own certificate;
// it ends with the root, as in Istio's documentation and in the original.
func (c CACerts) Data() (map[string][]byte, error) {
	chain := c.Authority.chain
	if _, err := chain.anchor(c.Roots); err != nil {
		return nil, err
	}
	key, err := c.Authority.key.PEM()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		CACertKey: chain[:1].PEM(), CAKeyKey: key, CAChainKey: chain.PEM(), RootCertKey: c.rootsPEM(),
	}, nil
}

// rootsPEM are the Roots in the order in which they are written.
func (c CACerts) rootsPEM() []byte {
	root := c.Authority.chain.Root()
	if !c.SignerFirst || !c.Roots.Contains(root) {
		return c.Roots.PEM()
	}
	return c.Roots.pemFrom(root)
}

// ReadCACerts reads istiod's Secret cacerts, in its own form or that of kubernetes.io/tls, which istiod takes too. Its
// chain must lead to a root that is trusted: istiod does not start otherwise.
func ReadCACerts(data map[string][]byte) (CACerts, error) {
	form, roots := formats[0], RootCertKey
	if len(data[TLSCertKey]) > 0 { // istiod prefers it
		form, roots = formats[1], TLSRootKey
	}
	for _, key := range append([]string{form.key, roots}, form.certs...) {
		// Istiod looks only whether there is a chain: its own CA has an empty one.
		if _, exists := data[key]; !exists || len(data[key]) == 0 && key != CAChainKey {
			return CACerts{}, &Error{
				Object: "Secret", Reason: Missing, Problem: "has no " + key, Want: []string{key},
				Next: "istiod does not start with it: add the key, or delete the Secret to have it written again",
			}
		}
	}
	authority, err := form.read(data)
	if err != nil {
		return CACerts{}, err
	}
	certs, err := readCertificates(roots, data[roots])
	if err != nil {
		return CACerts{}, err
	}
	out := CACerts{Authority: authority, Roots: NewBundle(certs...)}
	if _, err := authority.chain.anchor(out.Roots); err != nil {
		return CACerts{}, err
	}
	// In the order of the Bundle it may be first by chance; the bytes are the same then.
	out.SignerFirst = certs[0].Equal(authority.chain.Root()) && !certs[0].Equal(out.Roots.certs[0])
	return out, nil
}
