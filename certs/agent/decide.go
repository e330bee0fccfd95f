package agent

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// decision is what follows from what was observed.
type decision struct {
	// write is the next write; nil if nothing is to be written. After it, everything is observed anew: no step is stored.
	write *write
	// sign is the request that a Vault is to sign; nil if none is, or meshctl serve signs it.
	sign *request
	// status is what the IssuedCertificate is to say; nil if there is none.
	status *certificatesv1.IssuedCertificateStatus
	// note is what a mesh that leaves waits for, as a sentence; its IssuedCertificate cannot say it.
	note string
	// done: nothing is left of the mesh.
	done bool
}

// decide is pure: it depends on nothing but the facts.
func decide(f *facts) decision {
	err, gone := f.usageObstacle(), f.certificate == nil
	switch {
	case err != nil && gone:
		return decision{note: err.Error()}
	case err != nil:
		return f.failed(err)
	case f.at.forGateways() && gone:
		return f.withdrawGateways()
	case f.at.forGateways():
		return f.provideGateways()
	case gone:
		return f.leave()
	}
	return f.join()
}

// join brings the mesh to what its IssuedCertificate asks for.
func (f *facts) join() decision {
	if f.holder == users && f.userManages() {
		return decision{status: f.userStatus()}
	}
	if err := f.obstacle(); err != nil {
		return f.failed(err)
	}
	r, err := newRequest(f)
	if err != nil {
		return f.failed(fmt.Errorf("IssuedCertificate %s: %w", f.owner(), err))
	}
	signer, answer := r.signer()
	e := &exchange{facts: f, bundle: r.bundle, next: signer}
	if r.inHand() {
		e.next, answer = f.have.Authority, nil
	}
	var step *write
	if f.holder == ours && !f.isOurs(f.cacerts) { // before there is another key: it is known to be ours only by this one
		step, err = f.exchangeTo(e, r.sum)
	}
	if step == nil {
		if step, err = r.next(answer); err != nil {
			return f.failed(err)
		}
	}
	if step == nil {
		step, err = f.exchangeTo(e, r.sum)
	}
	d := decision{write: step, status: r.status(e, answer, err)}
	if step == nil && r.forVault() {
		d.sign = r
	}
	return d
}

// signer is what signs with the answer.
func (r *request) signer() (*pki.Authority, error) {
	chain, err := r.answer()
	if err != nil {
		return nil, err
	}
	return pki.NewAuthority(chain, r.privateKey)
}

// exchangeTo is the next write that brings cacerts to what is safe now.
func (f *facts) exchangeTo(e *exchange, sum string) (*write, error) {
	want, err := e.want()
	if err != nil {
		return nil, err
	}
	if f.holder == users || f.holder == istios {
		if step, err := f.backUp(); step != nil || err != nil {
			return step, err
		}
	}
	if !same(want.Authority, e.next) {
		sum = ""
	}
	return f.putCACerts(want, sum, e.change(want))
}

// change says what becomes of cacerts, for the log.
func (e *exchange) change(want pki.CACerts) string {
	switch {
	case e.cacerts == nil:
		return "it was missing"
	case e.edited:
		return "somebody else changed it; it is put back"
	case !same(want.Authority, e.signer()):
		return "another certificate signs from now on"
	case e.have != nil && !want.Roots.Equal(e.have.Roots):
		return "other roots are trusted from now on"
	}
	return "it is marked as ours"
}

// userManages: the user's own certificate has the root that is asked for.
func (f *facts) userManages() bool {
	return f.have != nil && f.certificate.Spec.Trust != nil && pki.Fingerprint(rootOf(f.have.Authority)) == f.certificate.Spec.Trust.Root
}

// obstacle is why nothing can be done for a certificate.
func (f *facts) obstacle() error {
	spec, object := f.certificate.Spec, fmt.Sprintf("Secret %s/%s", f.at.Namespace, f.at.Name)
	switch {
	case spec.Trust == nil:
		return fmt.Errorf("IssuedCertificate %s does not say what the mesh is to trust (spec.trust); update meshctl serve", f.owner())
	case f.holder == others:
		return fmt.Errorf("%s is managed for IssuedCertificate %s; a mesh can be in one VirtualMesh: take it out of one of them", object, f.cacerts.Annotations[OwnerAnnotation])
	case f.at.forGateways() && spec.AgentCa != nil:
		return fmt.Errorf("IssuedCertificate %s asks for a certificate of gateways that the agent has signed (spec.agentCa), and only meshctl serve signs them; "+
			"update meshctl serve", f.owner())
	case f.at.forGateways() && f.holder != ours && f.holder != nobodys:
		return fmt.Errorf("%s was made by somebody else, and is not replaced; the gateways of the mesh need its name for their certificate: rename or delete it", object)
	case f.holder == users && !spec.Trust.ReplaceUserSecret:
		return fmt.Errorf("%s was made by a user, and its root is not that of the VirtualMesh; set mtlsConfig.replaceUserCertificates in the VirtualMesh to have it "+
			"replaced (a copy is kept), or sign its certificate with the root of the VirtualMesh", object)
	case f.holder == users && f.cacerts.Type == corev1.SecretTypeTLS:
		return fmt.Errorf("%s is of type %s, which cannot be changed, and what wrote it (such as cert-manager) would write it again; "+
			"sign it with the root of the VirtualMesh, or stop that and delete it", object, corev1.SecretTypeTLS)
	case f.cacerts != nil && f.cacerts.Immutable != nil && *f.cacerts.Immutable:
		return fmt.Errorf("%s is immutable; create it again without immutable: true", object)
	}
	return nil
}

// backUp copies the Secret that is about to be replaced; nil if that was done. A copy is never replaced: it may be the only
// one of what was there before us.
func (f *facts) backUp() (*write, error) {
	if f.backup == nil {
		metadata, err := encodeMetadata(f.cacerts)
		if err != nil {
			return nil, err
		}
		return &write{verb: put, what: "a copy of " + f.at.Name, secret: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: f.at.Namespace, Name: BackupName,
				Annotations: map[string]string{OwnerAnnotation: f.owner(), metadataAnnotation: metadata},
			},
			Type: f.cacerts.Type, Data: f.cacerts.Data,
		}}, nil
	}
	if f.isOurs(f.backup) && sameData(f.backup, f.cacerts) {
		return nil, nil
	}
	return nil, fmt.Errorf("Secret %s/%s is not the copy of %s: it is of an earlier time, or of somebody else; look whether it is still needed, and delete it",
		f.at.Namespace, BackupName, f.at.Name)
}

func sameData(a, b *corev1.Secret) bool {
	return maps.EqualFunc(a.Data, b.Data, func(a, b []byte) bool { return string(a) == string(b) })
}

// failed keeps what was seen last.
func (f *facts) failed(err error) decision {
	return decision{status: f.withError(f.baseStatus(), err)}
}

// isWaiting: the error is no failure, but a wait.
func isWaiting(err error) bool {
	return err == nil || errors.Is(err, errUnsigned)
}
