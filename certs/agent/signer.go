package agent

import (
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/certs/pki"
)

// exchange is what cacerts is to become: the same while a mesh joins, while its root is exchanged, and while it leaves.
type exchange struct {
	*facts
	// bundle are the roots that all workloads are to trust in the end.
	bundle pki.Bundle
	// next is the signer that is wanted; nil if it is not in hand.
	next *pki.Authority
}

// want is the content of cacerts that is safe now: next signs if everybody trusts its root, else who signs now goes on.
// The roots are the bundle, and those that are still presented.
func (e *exchange) want() (pki.CACerts, error) {
	current := e.current()
	signer := current
	if e.next != nil && e.mayFollow(current) {
		signer = e.next
	}
	if signer == nil {
		return pki.CACerts{}, e.noSigner()
	}
	roots := e.bundle.Union(pki.NewBundle(rootOf(signer)), e.presented())
	if current != nil {
		roots = roots.Union(pki.NewBundle(rootOf(current)))
	}
	// Whoever sees the signer change must not see a root go at the same time: certificates of it are still out there. If the
	// set stays as it is, istiod takes the new signer live.
	if e.have != nil && !e.edited && !same(signer, e.have.Authority) {
		roots = roots.Union(e.have.Roots)
	}
	return pki.CACerts{Authority: signer, Roots: roots, SignerFirst: e.signerFirst()}, nil
}

// mayFollow: nobody is cut off if next signs from now on.
func (e *exchange) mayFollow(current *pki.Authority) bool {
	root := rootOf(e.next)
	switch {
	case current != nil && rootOf(current).Equal(root):
		return true // who trusts the one trusts the other
	case current != nil && e.expired(current):
		return true // nobody takes its certificates any more
	case e.mesh == nil:
		return false
	}
	return e.trusted(root) || current == nil && e.mesh.empty()
}

func (e *exchange) trusted(root *x509.Certificate) bool {
	return e.mesh != nil && slices.Contains(e.mesh.Trusted, pki.Fingerprint(root))
}

// current is who signs now: what cacerts has, or, if that is missing or was edited, what the mesh was seen to use. nil if
// it cannot be said.
func (e *exchange) current() *pki.Authority {
	signer := e.signer()
	if signer != nil && (!e.edited || e.isKnown(signer)) {
		return signer
	}
	var possible []*pki.Authority
	if e.next != nil && e.trusted(rootOf(e.next)) {
		possible = append(possible, e.next)
	}
	if former := e.former(); former != nil {
		possible = append(possible, former.Authority)
	}
	possible = append(possible, e.next)
	for _, p := range possible {
		if p != nil && e.mesh != nil && slices.Contains(e.mesh.Presented, pki.Fingerprint(rootOf(p))) {
			return p
		}
	}
	return nil
}

// isKnown: the signer is one that the agent could have written.
func (e *exchange) isKnown(signer *pki.Authority) bool {
	for _, known := range []*pki.CACerts{e.before, e.self} {
		if known != nil && same(signer, known.Authority) {
			return true
		}
	}
	return same(signer, e.next) || e.privateKey.Check(signer.Chain()[0]) == nil && e.bundle.Contains(rootOf(signer))
}

// presented are the roots that certificates in use lead to. What cannot be seen may be in use.
func (e *exchange) presented() pki.Bundle {
	var have pki.Bundle
	if e.have != nil && !e.edited {
		have = e.have.Roots
	}
	if e.mesh == nil {
		return have
	}
	known := have.Union(e.bundle, e.mesh.Known)
	for _, more := range []*pki.CACerts{e.have, e.before, e.self} {
		if more != nil {
			known = known.Union(more.Roots)
		}
	}
	return pki.NewBundle(slices.DeleteFunc(known.Certificates(), func(root *x509.Certificate) bool {
		return !slices.Contains(e.mesh.Presented, pki.Fingerprint(root))
	})...)
}

// signerFirst: see pki.CACerts. Unless it is known, it stays as it is.
func (e *exchange) signerFirst() bool {
	if e.mesh != nil {
		return e.mesh.MultiRoot
	}
	return e.have != nil && e.have.SignerFirst
}

// noSigner says why it is not known who signs.
func (e *exchange) noSigner() error {
	object := fmt.Sprintf("Secret %s/%s is not written", e.at.Namespace, e.at.Name)
	switch {
	case e.mesh == nil:
		return fmt.Errorf("%s: there is none yet, and what the mesh presents cannot be seen: %w", object, e.meshErr)
	case e.selfErr != nil:
		return fmt.Errorf("%s: Secret %s/%s, whose CA is in use, cannot be read: %w", object, e.at.Namespace, SelfSignedName, e.selfErr)
	case e.next == nil && e.mesh.empty():
		return errUnsigned
	}
	return fmt.Errorf("%s: the mesh presents the roots %s, and none of them is that of Secret %s/%s; put the CA that istiod uses into Secret %s, "+
		"or set replaceUserCertificates and restart istiod and the workloads with it", object, list(e.mesh.Presented), e.at.Namespace, SelfSignedName, e.at.Name)
}

// list shortens fingerprints.
func list(prints []string) string {
	if len(prints) == 0 {
		return "(none)"
	}
	text := ""
	for i, one := range prints[:min(len(prints), 3)] {
		if i > 0 {
			text += ", "
		}
		text += one[:min(len(one), 16)] + "..."
	}
	return text
}
