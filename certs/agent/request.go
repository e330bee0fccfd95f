package agent

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// retryAfter is how soon a new certificate is requested because the last answer cannot be used. It bounds what a management
// plane that always answers wrongly costs: one key a minute.
const retryAfter = time.Minute

// errUnsigned: the request waits to be signed.
var errUnsigned = errors.New("the request is not signed yet")

// request is what a certificate is asked for, with the parts that a join needs.
type request struct {
	*facts
	spec *certificatesv1.IssuedCertificateSpec
	// bundle are the roots that are asked for, and root is the one of them that is to sign.
	bundle pki.Bundle
	root   *x509.Certificate
	// sum is that of the options.
	sum string
}

// newRequest checks the spec.
func newRequest(f *facts) (*request, error) {
	r := &request{facts: f, spec: &f.certificate.Spec}
	bundle, err := pki.ReadBundle([]byte(r.spec.Trust.Bundle))
	if err != nil {
		return nil, fmt.Errorf("spec.trust.bundle: %w", err)
	}
	i := slices.IndexFunc(bundle.Certificates(), func(cert *x509.Certificate) bool { return pki.Fingerprint(cert) == r.spec.Trust.Root })
	if i < 0 {
		return nil, fmt.Errorf("spec.trust.root %q is not in spec.trust.bundle; both are written by meshctl serve: check that it runs", r.spec.Trust.Root)
	}
	r.bundle, r.root = bundle, bundle.Certificates()[i]
	r.sum = optionsSum(r.spec)
	return r, nil
}

// inHand: the certificate in the Secret is what is asked for, and is not to be renewed.
func (r *request) inHand() bool {
	return r.inUse() && r.cacerts.Annotations[optionsAnnotation] == r.sum && !r.due(r.chain[0], renewalRatio(r.spec))
}

// inUse: the certificate in the Secret is ours, and of the root that is asked for.
func (r *request) inUse() bool {
	return r.holder == ours && r.chain != nil && r.chain.Root().Equal(r.root)
}

// next is the next write that is needed for a certificate, if any: first a key, then a request for it.
func (r *request) next(answer error) (*write, error) {
	if r.key != nil && r.key.Type != KeyType {
		return nil, fmt.Errorf("Secret %s/%s is not of type %s: a user made it; rename or delete it", r.namespace, r.name, KeyType)
	}
	if r.inHand() && r.request != nil {
		return r.keepRecord(), nil
	}
	if !r.keyServes(answer) {
		return r.writeKey(), nil
	}
	if !r.requestServes() {
		return r.writeRequest(), nil
	}
	return r.keepRecord(), nil
}

// keyServes: the key is for the options, and no certificate was made for it that is not to be used any more.
func (r *request) keyServes(answer error) bool {
	switch {
	case r.privateKey.IsZero():
		return false
	case r.inHand():
		return true // only the record is missing
	case r.key.Annotations[optionsAnnotation] != r.sum:
		return false
	case r.chain != nil && r.privateKey.Check(r.chain[0]) == nil:
		return false // a new certificate gets a new key
	case r.request == nil || answer == nil || errors.Is(answer, errUnsigned) || pki.ReasonOf(answer) == pki.NotYetValid:
		return true
	}
	last := recordOf(r.request)
	var refused *refusedError
	return errors.As(answer, &refused) || last != nil && last.since(r.now) < retryAfter
}

// requestServes: the request is for the key and the hosts.
func (r *request) requestServes() bool {
	if r.request == nil || r.request.Annotations[optionsAnnotation] != r.key.Annotations[optionsAnnotation] {
		return false
	}
	asked, err := pki.ReadRequest(r.request.Spec.CertificateSigningRequest)
	if err != nil {
		return false
	}
	public, ok := asked.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	if !ok || !public.Equal(r.privateKey.Public()) {
		return false
	}
	return r.key.Annotations[optionsAnnotation] != r.sum || slices.Equal(asked.Hosts(), sorted(r.spec.Hosts))
}

func (r *request) writeKey() *write {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name}, Type: KeyType}
	if r.key != nil {
		secret = r.key.DeepCopy()
	}
	annotate(secret, map[string]string{OwnerAnnotation: r.owner(), optionsAnnotation: r.sum})
	return &write{verb: put, what: "a new private key", secret: secret, makeKey: keyBits(r.spec)}
}

func (r *request) writeRequest() *write {
	request := &certificatesv1.CertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name}}
	if r.request != nil {
		request = r.request.DeepCopy()
	}
	at := r.at
	at.RequestedAt = r.now.Unix()
	annotate(request, map[string]string{recordAnnotation: at.text(), optionsAnnotation: r.key.Annotations[optionsAnnotation]})
	return &write{verb: put, what: "a request for a certificate", request: request, sign: &signing{
		key: r.privateKey, organization: organization(r.spec), hosts: r.spec.Hosts,
	}}
}

// keepRecord corrects the record; nil if it is right.
func (r *request) keepRecord() *write {
	at := r.at
	if last := recordOf(r.request); last != nil {
		at.RequestedAt = last.RequestedAt
	}
	if r.request.Annotations[recordAnnotation] == at.text() && r.request.Annotations[snapshot.WaitsAnnotation] == "" {
		return nil
	}
	request := r.request.DeepCopy()
	annotate(request, map[string]string{recordAnnotation: at.text(), snapshot.LeaveNowAnnotation: "", snapshot.WaitsAnnotation: ""})
	return &write{verb: put, what: "the record of the mesh", request: request}
}

// refusedError: who signs refused to. It tries again by itself.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// answer is the certificate that was signed for the key, or why there is none that can be used. Nothing is taken from the
// status without being verified: who may write it must not be able to slip in a CA.
func (r *request) answer() (pki.Chain, error) {
	if r.request == nil || r.privateKey.IsZero() || !r.requestServes() || r.request.Annotations[optionsAnnotation] != r.sum {
		return nil, errUnsigned
	}
	status := r.request.Status
	object := fmt.Sprintf("CertificateRequest %s", r.owner())
	switch {
	case status.ObservedGeneration != r.request.Generation:
		return nil, errUnsigned
	case status.State == certificatesv1.CertificateRequestFailed:
		return nil, &refusedError{fmt.Sprintf("%s failed to be signed by %s: %s", object, r.signerName(), status.Error)}
	case status.State != certificatesv1.CertificateRequestFinished || len(status.SignedCertificate) == 0:
		return nil, errUnsigned
	}
	chain, err := r.verified(status.SignedCertificate)
	if err != nil {
		return nil, fmt.Errorf("%s: the signed certificate cannot be used: %w", object, err)
	}
	if r.due(chain[0], renewalRatio(r.spec)) {
		return nil, fmt.Errorf("%s: the signed certificate ends at %s and is to be renewed", object, chain[0].NotAfter.UTC().Format(time.RFC3339))
	}
	return chain, nil
}

// verified is a signed certificate up to its root: it leads to the root that was asked for, is for the key and the hosts and for
// nobody else, and is a CA, or for gateways none, at one of the clocks at least.
func (r *request) verified(signed []byte) (pki.Chain, error) {
	chain, err := r.chainOf(signed)
	if err != nil {
		return nil, err
	}
	want := pki.Want{Usage: pki.ForCA, Hosts: r.spec.Hosts, Key: r.privateKey}
	if r.at.forGateways() {
		want.Usage = pki.ForWorkload
	}
	for _, at := range []time.Time{r.now, r.serverNow()} {
		if err = pki.Verify(chain, pki.NewBundle(r.root), at, want); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if have := hostsOf(chain[0]); !slices.Equal(have, sorted(r.spec.Hosts)) {
		return nil, fmt.Errorf("it is for the hosts %q, not %q; check the IssuedCertificate and that %s is up to date", have, sorted(r.spec.Hosts), r.signerName())
	}
	domains := sorted(r.spec.Trust.TrustDomains)
	if want.Usage == pki.ForCA && len(domains) > 0 && !slices.Equal(sorted(chain[0].PermittedURIDomains), domains) {
		return nil, fmt.Errorf("it is for the trust domains %q, not %q; update %s to a version that restricts them", chain[0].PermittedURIDomains, domains, r.signerName())
	}
	return chain, nil
}

// chainOf is a signed certificate with those above it. Of roots with one key, it is that which was asked for.
func (r *request) chainOf(signed []byte) (pki.Chain, error) {
	certs, err := pki.ReadCertificates(signed)
	if err != nil {
		return nil, err
	}
	return pki.NewChain(certs[0], append([]*x509.Certificate{r.root}, certs[1:]...)...)
}

func hostsOf(cert *x509.Certificate) []string {
	out := slices.Clone(cert.DNSNames)
	for _, uri := range cert.URIs {
		out = append(out, uri.String())
	}
	for _, ip := range cert.IPAddresses {
		out = append(out, ip.String())
	}
	return sorted(append(out, cert.EmailAddresses...))
}

func sorted(items []string) []string {
	items = slices.Clone(items)
	slices.Sort(items)
	return slices.Compact(items)
}

// annotate adds annotations to an object; empty ones are removed.
func annotate(object metav1.Object, add map[string]string) {
	all := map[string]string{}
	for key, value := range object.GetAnnotations() {
		all[key] = value
	}
	for key, value := range add {
		if all[key] = value; value == "" {
			delete(all, key)
		}
	}
	object.SetAnnotations(all)
}
