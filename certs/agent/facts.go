package agent

import (
	"crypto/x509"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// observed is all that a decision about one mesh is made from. A nil object does not exist: what could not be read leads to
// no decision.
type observed struct {
	// now is by the agent's clock, which is ahead of the API server's by skew.
	now  time.Time
	skew time.Duration
	// namespace and name are those of the IssuedCertificate.
	namespace, name string
	certificate     *certificatesv1.IssuedCertificate
	// gone is for how long there has been no IssuedCertificate; leaveAfter is when the mesh leaves.
	gone, leaveAfter time.Duration
	key              *corev1.Secret
	request          *certificatesv1.CertificateRequest
	directive        *certificatesv1.PodBounceDirective
	// settleAfter is how long after a change of their Secret gateways are taken to have loaded it.
	settleAfter time.Duration
	// cacerts is the Secret that the certificate goes to: cacerts, or that of gateways.
	cacerts *corev1.Secret
	// backup and selfSigned are the Secrets of these names beside cacerts.
	backup, selfSigned *corev1.Secret
	// mesh is what the Verifier saw; nil if it could not, and meshErr says why.
	mesh    *MeshState
	meshErr error
}

// holder is whose the Secret cacerts is.
type holder int

const (
	nobodys holder = iota
	ours
	users
	istios
	// others is that of another IssuedCertificate or agent.
	others
)

// facts are what the objects mean.
type facts struct {
	observed
	// at is where cacerts is.
	at     record
	holder holder
	// have is what is in cacerts; nil if there is none or haveErr.
	have    *pki.CACerts
	haveErr error
	// gateways is what is in the Secret of gateways; nil if it cannot be read.
	gateways *pki.GatewayTLS
	// chain is the certificate of either, up to its root; nil if there is none that could be ours.
	chain pki.Chain
	// edited: somebody else changed what the agent wrote.
	edited bool
	// before is what was in cacerts before, from the backup. self is istiod's own root.
	before, self *pki.CACerts
	selfErr      error
	// mayNotRefresh: the agent was registered before it had the right to have kubelets pass a Secret on at once.
	mayNotRefresh bool
	// key is that of the key's Secret.
	privateKey pki.Key
}

// newFacts reads the objects. at is where cacerts is.
func newFacts(o observed, at record) *facts {
	f := &facts{observed: o, at: at}
	if o.key != nil && o.key.Type == KeyType {
		// A key that cannot be read is replaced like one that is missing.
		f.privateKey, _ = pki.ReadKey(o.key.Data[privateKey])
	}
	f.holder = f.whose(o.cacerts)
	if at.forGateways() {
		f.readGateways()
		return f
	}
	f.have, f.haveErr = readCACerts(o.cacerts)
	if f.have != nil {
		f.chain = f.have.Authority.Chain()
	}
	f.edited = f.holder == ours && (f.have == nil || o.cacerts.Annotations[contentAnnotation] != contentSum(o.cacerts.Data))
	if f.isOurs(o.backup) {
		f.before, _ = readCACerts(o.backup) // leave says if it is needed and cannot be read
	}
	f.self, f.selfErr = readSelfSigned(o.selfSigned)
	return f
}

func (o *observed) owner() string { return o.namespace + "/" + o.name }

func (o *observed) isOurs(secret *corev1.Secret) bool {
	return secret != nil && secret.Annotations[OwnerAnnotation] == o.owner()
}

// whose decides by our annotation. The type says nothing: it cannot be changed in a Secret that is taken over.
func (f *facts) whose(secret *corev1.Secret) holder {
	switch {
	case secret == nil:
		return nobodys
	case f.isOurs(secret):
		return ours
	case secret.Annotations[OwnerAnnotation] != "":
		return others
	case hasKey(secret.Data, istioGenerated):
		return istios
	}
	// Somebody removed the annotation: what has our key is not a user's.
	certificate := pki.CACertKey
	if f.at.forGateways() {
		certificate = pki.TLSCertKey
	}
	if certs, err := pki.ReadCertificates(secret.Data[certificate]); err == nil && f.privateKey.Check(certs[0]) == nil {
		return ours
	}
	return users
}

func hasKey(data map[string][]byte, key string) bool {
	_, ok := data[key]
	return ok
}

func readCACerts(secret *corev1.Secret) (*pki.CACerts, error) {
	if secret == nil {
		return nil, nil
	}
	read, err := pki.ReadCACerts(secret.Data)
	if err != nil {
		return nil, err
	}
	return &read, nil
}

// readSelfSigned reads istio-ca-secret, whose certificate is its own root.
func readSelfSigned(secret *corev1.Secret) (*pki.CACerts, error) {
	if secret == nil {
		return nil, nil
	}
	data := maps.Clone(secret.Data)
	delete(data, istioGenerated)
	authority, err := pki.ReadAuthority(data)
	if err != nil {
		return nil, err
	}
	return &pki.CACerts{Authority: authority, Roots: pki.NewBundle(authority.Chain().Root())}, nil
}

// former is the CA that signed before, and goes on when the mesh leaves; nil if there is none.
func (f *facts) former() *pki.CACerts {
	if f.before != nil || f.backup != nil {
		return f.before
	}
	if f.holder == ours && f.cacerts.Annotations[replacedAnnotation] == BackupName {
		return nil // somebody deleted the copy
	}
	return f.self
}

// serverNow is the time by the API server's clock. Which of the two clocks is wrong is not known, so that a certificate is
// used only when it is valid by both.
func (o *observed) serverNow() time.Time { return o.now.Add(-o.skew) }

// valid says why a certificate cannot be used now, by either clock.
func (o *observed) valid(chain pki.Chain, roots pki.Bundle, usage pki.Usage) error {
	for _, at := range []time.Time{o.now, o.serverNow()} {
		if err := pki.Verify(chain, roots, at, pki.Want{Usage: usage}); err != nil {
			return err
		}
	}
	return nil
}

// expired: by both clocks, some certificate of the chain has expired.
func (o *observed) expired(signer *pki.Authority) bool {
	for _, at := range []time.Time{o.now, o.serverNow()} {
		if !expiredAt(signer.Chain(), at) {
			return false
		}
	}
	return true
}

func expiredAt(chain pki.Chain, at time.Time) bool {
	for _, cert := range chain {
		if at.After(cert.NotAfter) {
			return true
		}
	}
	return false
}

// due: by both clocks, the certificate is to be renewed. One clock is not enough: by a clock that is far ahead, each new
// certificate would be due at once.
func (o *observed) due(cert *x509.Certificate, ratio float64) bool {
	at, err := pki.RenewAt(cert, ratio)
	if err != nil { // the API has these bounds; the original's default is used then
		at, err = pki.RenewAt(cert, 0)
	}
	return err == nil && !o.now.Before(at) && !o.serverNow().Before(at)
}

// rootOf is the root that a signer leads to.
func rootOf(signer *pki.Authority) *x509.Certificate { return signer.Chain().Root() }

func same(a, b *pki.Authority) bool {
	return a != nil && b != nil && a.Chain()[0].Equal(b.Chain()[0])
}
