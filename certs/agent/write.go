package agent

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// verb is what is done with an object.
type verb int

const (
	// put creates the object if it has no resource version, and else replaces that version.
	put verb = iota
	// remove deletes the version of the object.
	remove
)

// write is one write. It is based on the version of the object that the decision was made from: if that has changed, it
// fails, and is decided anew.
type write struct {
	verb verb
	// what it writes, for the log.
	what string
	// Exactly one of these is set.
	secret  *corev1.Secret
	request *certificatesv1.CertificateRequest
	// makeKey, if not 0, is the size of the key that is to be made and put into secret.
	makeKey int
	// sign, if set, is the signing request that is to be made and put into request.
	sign *signing
}

type signing struct {
	key          pki.Key
	organization string
	hosts        []string
}

// String has no content of objects.
func (w *write) String() string {
	object, verb := "", "write "
	switch {
	case w.secret != nil:
		object = fmt.Sprintf("Secret %s/%s", w.secret.Namespace, w.secret.Name)
	case w.request != nil:
		object = fmt.Sprintf("CertificateRequest %s/%s", w.request.Namespace, w.request.Name)
	}
	if w.verb == remove {
		verb = "delete "
	}
	return verb + object + ": " + w.what
}

// putCACerts writes cacerts, so that signer signs and roots are trusted; nil if it is so already. sum is that of the
// options of signer, if it is what was asked for.
func (f *facts) putCACerts(want pki.CACerts, sum, what string) (*write, error) {
	object := fmt.Sprintf("Secret %s/%s", f.at.Namespace, f.at.Name)
	data, err := want.Data()
	if err == nil {
		_, err = pki.ReadCACerts(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not written, because istiod could not use it: %w", object, err)
	}
	secret := &corev1.Secret{Type: IssuedType}
	if f.cacerts != nil {
		secret = f.cacerts.DeepCopy()
	}
	secret.Namespace, secret.Name = f.at.Namespace, f.at.Name
	if same(want.Authority, f.signer()) && f.holder == ours {
		sum = secret.Annotations[optionsAnnotation]
	}
	annotate(secret, map[string]string{
		OwnerAnnotation: f.owner(), contentAnnotation: contentSum(data), optionsAnnotation: sum, leftAnnotation: "",
		replacedAnnotation: f.replaced(),
	})
	if f.cacerts != nil && maps.EqualFunc(data, f.cacerts.Data, func(a, b []byte) bool { return string(a) == string(b) }) &&
		maps.Equal(secret.Annotations, f.cacerts.Annotations) {
		return nil, nil
	}
	secret.Data, secret.StringData = data, nil
	if err := f.valid(want.Authority.Chain(), want.Roots, pki.ForCA); err != nil {
		return nil, fmt.Errorf("%s is not written: %w", object, err)
	}
	return &write{verb: put, what: what, secret: secret}, nil
}

// replaced names the Secret whose CA signed before.
func (f *facts) replaced() string {
	switch {
	case f.holder == ours && f.cacerts.Annotations[replacedAnnotation] != "":
		return f.cacerts.Annotations[replacedAnnotation]
	case f.backup != nil:
		return BackupName
	case f.selfSigned != nil:
		return SelfSignedName
	}
	return ""
}

// signer is what signs according to cacerts; nil if that cannot be said.
func (f *facts) signer() *pki.Authority {
	if f.have == nil {
		return nil
	}
	return f.have.Authority
}
