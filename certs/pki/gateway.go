package pki

// GatewayTLS is the Secret from which gateways of Istio load their certificate, by its name (credentialName): of type
// kubernetes.io/tls, with tls.crt, tls.key and ca.crt (pilot/pkg/credentials/kube, ExtractCertInfo and ExtractRoot). Istio
// prefers other keys of the same Secret, such as cert and cacert, so that it must have no more than these three.
type GatewayTLS struct {
	// Chain is the gateway's certificate first, and its root last.
	Chain Chain
	// Key is that of the certificate.
	Key Key
	// Roots are those that the gateway trusts; they must include that of Chain.
	Roots Bundle
}

// Data is the data of the Secret. It has the private key. The root is not presented: who does not have it does not trust it.
// It is the first of ca.crt, so that it can be told from another one with the same key.
func (g GatewayTLS) Data() (map[string][]byte, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	key, err := g.Key.PEM()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{TLSCertKey: g.Chain[:len(g.Chain)-1].PEM(), TLSKeyKey: key, TLSRootKey: g.Roots.pemFrom(g.Chain.Root())}, nil
}

// ReadGatewayTLS reads what Data has written. It does not check times: Verify does.
func ReadGatewayTLS(data map[string][]byte) (GatewayTLS, error) {
	for _, key := range []string{TLSCertKey, TLSKeyKey, TLSRootKey} {
		if len(data[key]) == 0 {
			return GatewayTLS{}, &Error{
				Object: "Secret", Reason: Missing, Problem: "has no " + key, Want: []string{key},
				Next: "gateways cannot load it: delete the Secret to have it written again",
			}
		}
	}
	key, err := readKey(TLSKeyKey, data[TLSKeyKey])
	if err != nil {
		return GatewayTLS{}, err
	}
	certs, err := readCertificates(TLSCertKey, data[TLSCertKey])
	if err != nil {
		return GatewayTLS{}, err
	}
	roots, err := readCertificates(TLSRootKey, data[TLSRootKey])
	if err != nil {
		return GatewayTLS{}, err
	}
	chain, err := NewChain(certs[0], append(certs[1:], roots...)...)
	if err != nil {
		return GatewayTLS{}, err
	}
	out := GatewayTLS{Chain: chain, Key: key, Roots: NewBundle(roots...)}
	return out, out.check()
}

// check says why a gateway could not use it at any time.
func (g GatewayTLS) check() error {
	switch {
	case len(g.Chain) == 0:
		return &Error{Object: "Secret", Reason: Missing, Problem: "has no certificate", Next: "give it one"}
	case !selfSigned(g.Chain.Root()):
		return incomplete(g.Chain.Root())
	case len(g.Chain) == 1 || g.Chain[0].IsCA:
		return &Error{Object: name(g.Chain[0]), Reason: WrongUsage, Problem: "is a CA, not a gateway's", Next: "use a certificate that is for a gateway"}
	case !g.Roots.Contains(g.Chain.Root()):
		return unknownRoot(g.Chain, g.Roots)
	}
	return g.Key.Check(g.Chain[0])
}
