package roots

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/certs/pki"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// SecretType is that of generated roots (behaviour.md, section 6.1), and of the certificates of
// users' roots.
const SecretType corev1.SecretType = snapshot.RootSecretType

// Annotations of the Secrets.
const (
	// VirtualMeshAnnotation is whose the root is, as namespace/name, and UIDAnnotation the UID
	// that the VirtualMesh had then, for people.
	VirtualMeshAnnotation = "trust.multicluster.solo.io/virtual-mesh"
	UIDAnnotation         = "trust.multicluster.solo.io/virtual-mesh-uid"
	// CauseAnnotation says for people why the Secret was made.
	CauseAnnotation = "trust.multicluster.solo.io/cause"
	// MakingAnnotation is Record.Making.
	MakingAnnotation = "trust.multicluster.solo.io/making"
)

// maxName is in bytes, of an object.
const maxName = 253

// firstName is the name of the first generated root of a VirtualMesh.
func firstName(vm snapshot.Ref) string {
	if name := vm.Name + "." + vm.Namespace; len(name) <= maxName {
		return name
	}
	return "root." + sum(vm.Namespace, vm.Name)
}

// laterName is the name of another Secret of a VirtualMesh. Its last part is longer than any
// namespace, so that it is nobody's firstName.
func laterName(vm snapshot.Ref, what, of string) string {
	last := sum(vm.Namespace, vm.Name, what, of)
	if name := vm.Name + "." + vm.Namespace + "." + last; len(name) <= maxName {
		return name
	}
	return "root." + last
}

func sum(parts ...string) string {
	digest := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(digest[:])
}

// stored is what a Secret holds, as last read.
type stored struct {
	ref     snapshot.Ref
	uid     types.UID
	version string
	created time.Time
	// ours: the management plane made it, and may delete it.
	ours bool
	// making is what its annotation says.
	making string
	// rotate is the value of the rotate annotation because of which it was made.
	rotate string
	// virtualMesh is whose it is.
	virtualMesh snapshot.Ref
	// root is the root certificate, and authority what signs; nil if there is no key.
	root      *x509.Certificate
	authority *pki.Authority
	// problem is why it cannot be used, with the next step; empty if it can.
	problem string
}

// readGenerated reads a Secret of the management plane's namespace.
func (s *Store) readGenerated(secret *corev1.Secret) *stored {
	plane := snapshot.Plane{Namespace: s.Namespace, ID: s.PlaneID}
	out := s.read(secret)
	out.ours = plane.Owns(secret.Labels)
	out.virtualMesh = virtualMeshOf(secret)
	out.rotate, out.making = secret.Annotations[snapshot.TrustRotateAnnotation], secret.Annotations[MakingAnnotation]
	if id := secret.Labels[snapshot.PlaneLabel]; id != "" && !out.ours {
		out.root, out.authority = nil, nil
		out.problem = fmt.Sprintf("%s was made by another management plane (%s); delete it if nothing uses it", describe(out.ref), id)
	}
	return out
}

// readUser reads a Secret that a VirtualMesh names. It is nobody's unless it says so, or was generated.
func (s *Store) readUser(secret *corev1.Secret) *stored {
	out := s.read(secret)
	if _, says := secret.Annotations[VirtualMeshAnnotation]; says || secret.Type == SecretType {
		out.virtualMesh = virtualMeshOf(secret)
	}
	return out
}

// read reads a Secret with a root. Its key is nowhere but in the authority.
func (s *Store) read(secret *corev1.Secret) *stored {
	out := &stored{
		ref: snapshot.Ref{Kind: snapshot.Secret, Namespace: secret.Namespace, Name: secret.Name},
		uid: secret.UID, version: secret.ResourceVersion, created: secret.CreationTimestamp.Time,
	}
	if _, keyed := secret.Data[pki.RootKeyKey]; !keyed && secret.Type == SecretType {
		certs, err := pki.ReadCertificates(secret.Data[pki.RootCertKey])
		if err != nil {
			out.problem = fmt.Sprintf("%s: %v", describe(out.ref), err)
			return out
		}
		out.root = certs[0]
		return out
	}
	authority, err := pki.ReadAuthority(secret.Data)
	if err != nil {
		out.problem = fmt.Sprintf("%s: %v", describe(out.ref), err)
		return out
	}
	out.authority, out.root = authority, authority.Chain().Root()
	return out
}

// virtualMeshOf is whose root a Secret has: as its annotation says, or its name.
func virtualMeshOf(secret *corev1.Secret) snapshot.Ref {
	out := snapshot.Ref{Kind: snapshot.VirtualMesh}
	if whose, ok := secret.Annotations[VirtualMeshAnnotation]; ok {
		out.Namespace, out.Name, _ = strings.Cut(whose, "/")
		return out
	}
	if at := strings.LastIndexByte(secret.Name, '.'); at >= 0 {
		out.Name, out.Namespace = secret.Name[:at], secret.Name[at+1:]
	}
	return out
}

// expired says why a root cannot sign now; empty if it can.
func (o *stored) expired(now time.Time) string {
	for _, cert := range o.authority.Chain() {
		switch {
		case now.After(cert.NotAfter):
			return fmt.Sprintf("%s: its certificate expired at %s", describe(o.ref), cert.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(cert.NotBefore):
			return fmt.Sprintf("%s: its certificate is not valid before %s", describe(o.ref), cert.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// secretFor is a Secret of the store, for a VirtualMesh.
func (s *Store) secretFor(vm *networkingv1.VirtualMesh, name, cause string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Labels: s.labels(),
			Annotations: map[string]string{
				VirtualMeshAnnotation: vm.Namespace + "/" + vm.Name, UIDAnnotation: string(vm.UID), CauseAnnotation: cause,
			},
		},
		Type: SecretType, Data: data,
	}
}

// labels are those of what the store makes.
func (s *Store) labels() map[string]string {
	out := map[string]string{snapshot.NetworkingOwnerLabel: s.Namespace}
	if s.PlaneID != "" {
		out[snapshot.PlaneLabel] = s.PlaneID
	}
	return out
}

func describe(ref snapshot.Ref) string { return "Secret " + ref.Namespace + "/" + ref.Name }

// Keyless is the Secret that keeps the certificate of a root for a VirtualMesh without its key, as the store makes it where somebody else
// has the key; nil if the Secret has no root of a VirtualMesh. The Secret itself, if it has no key.
func Keyless(secret *corev1.Secret) *corev1.Secret {
	certs, err := pki.ReadCertificates(secret.Data[pki.RootCertKey])
	if err != nil || secret.Type != SecretType {
		return nil
	}
	if _, keyed := secret.Data[pki.RootKeyKey]; !keyed {
		return secret
	}
	out, of := secret.DeepCopy(), virtualMeshOf(secret)
	out.ObjectMeta = metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: laterName(of, "certificate", pki.Fingerprint(certs[0])), Labels: secret.Labels,
		Annotations: map[string]string{VirtualMeshAnnotation: of.Namespace + "/" + of.Name, CauseAnnotation: keptCause},
	}
	out.Data, out.Immutable = map[string][]byte{pki.RootCertKey: pki.Chain{certs[0]}.PEM()}, nil
	return out
}

// keptCause is why there is a Secret with a certificate alone.
const keptCause = "the certificate of a root whose key is not here"
