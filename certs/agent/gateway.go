package agent

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// readGateways reads the Secret of gateways. If somebody else changed it, only a certificate with our key counts.
func (f *facts) readGateways() {
	if f.cacerts == nil {
		return
	}
	if read, err := pki.ReadGatewayTLS(f.cacerts.Data); err == nil { // one that cannot be read is written again
		f.gateways = &read
	}
	f.edited = f.holder == ours && (f.gateways == nil || f.cacerts.Annotations[contentAnnotation] != gatewaySum(f.cacerts.Data))
	if f.gateways != nil && (!f.edited || f.privateKey.Check(f.gateways.Chain[0]) == nil) {
		f.chain = f.gateways.Chain
	}
}

// usageObstacle is why nothing can be done for what a certificate is for.
func (f *facts) usageObstacle() error {
	if f.at.Usage != certificatesv1.TrustUsageCA && !f.at.forGateways() {
		return fmt.Errorf("IssuedCertificate %s is for the usage %q, which this agent does not know; update the agent", f.owner(), f.at.Usage)
	}
	if last := recordOf(f.request); last != nil && last.Usage != f.at.Usage {
		return fmt.Errorf("IssuedCertificate %s was for the usage %q, and is for %q now; delete it, and create it again when its CertificateRequest is gone",
			f.owner(), last.Usage, f.at.Usage)
	}
	return nil
}

// provideGateways brings the Secret of gateways to what its IssuedCertificate asks for: by the same key and request as for a
// control plane. Who verifies the certificate are the gateways of other meshes, so that it is for who asks to know when another
// root may be put to use.
func (f *facts) provideGateways() decision {
	if err := f.obstacle(); err != nil {
		return f.failed(err)
	}
	r, err := newRequest(f)
	if err != nil {
		return f.failed(fmt.Errorf("IssuedCertificate %s: %w", f.owner(), err))
	}
	next, answer := r.answer()
	if r.inHand() {
		next, answer = nil, nil
	}
	var step *write
	switch {
	case next == nil && f.holder == ours && !f.isOurs(f.cacerts):
		step, err = r.putGateways(nil) // before there is another key: it is known to be ours only by this one
	case next == nil:
		step, err = r.next(answer)
	}
	if err != nil {
		return f.failed(err)
	}
	if step == nil {
		step, err = r.putGateways(next)
	}
	return decision{write: step, status: r.status(nil, answer, err)}
}

// putGateways writes the Secret with the next certificate, or, if that is nil, with the one that is there; nil if it is so
// already. It is written as a whole, and only with a certificate: it is never missing or incomplete once it is there.
func (r *request) putGateways(next pki.Chain) (*write, error) {
	want, sum := pki.GatewayTLS{Chain: next, Key: r.privateKey}, r.sum
	if next == nil {
		if r.chain == nil {
			return nil, errUnsigned
		}
		want.Chain, want.Key, sum = r.chain, r.gateways.Key, r.cacerts.Annotations[optionsAnnotation]
	}
	want.Roots = r.bundle.Union(pki.NewBundle(want.Chain.Root()))
	object := fmt.Sprintf("Secret %s/%s", r.at.Namespace, r.at.Name)
	data, err := want.Data()
	if err != nil {
		return nil, fmt.Errorf("%s is not written, because gateways could not use it: %w", object, err)
	}
	secret := &corev1.Secret{Type: corev1.SecretTypeTLS}
	if r.cacerts != nil {
		secret = r.cacerts.DeepCopy()
	}
	secret.Namespace, secret.Name = r.at.Namespace, r.at.Name
	same := maps.EqualFunc(data, secret.Data, func(a, b []byte) bool { return string(a) == string(b) })
	annotate(secret, map[string]string{OwnerAnnotation: r.owner(), contentAnnotation: gatewaySum(data), optionsAnnotation: sum})
	if same && r.loaded() != nil && maps.Equal(secret.Annotations, r.cacerts.Annotations) {
		return nil, nil
	}
	annotate(secret, map[string]string{loadedAnnotation: r.loading(want.Roots).text()})
	if err := r.valid(want.Chain, want.Roots, pki.ForWorkload); err != nil {
		return nil, fmt.Errorf("%s is not written: %w", object, err)
	}
	secret.Data, secret.StringData = data, nil
	return &write{verb: put, what: r.gatewayChange(want), secret: secret}, nil
}

// gatewayChange says what becomes of the Secret, for the log.
func (r *request) gatewayChange(want pki.GatewayTLS) string {
	switch {
	case r.cacerts == nil:
		return "it was missing"
	case r.edited:
		return "somebody else changed it; it is put back"
	case !want.Chain[0].Equal(r.chain[0]):
		return "gateways have another certificate from now on"
	case !want.Roots.Equal(r.gateways.Roots):
		return "gateways trust other roots from now on"
	}
	return "it is marked as ours"
}

// withdrawGateways deletes what there is for gateways. Nobody can be cut off: the IssuedCertificate goes after all that uses the
// certificate. The request goes last: it is the record.
func (f *facts) withdrawGateways() decision {
	const what = "the gateways have no certificate of a VirtualMesh any more"
	switch {
	case f.gone < f.leaveAfter:
		return decision{note: "its IssuedCertificate is gone; its gateways lose their certificate if that stays so"}
	case f.holder == ours:
		return decision{write: &write{verb: remove, what: what, secret: f.cacerts}}
	}
	return f.forget(what)
}
