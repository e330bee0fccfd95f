package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
)

// leave brings the mesh back to what it had before, on the same safe way: first everybody trusts the former root, then it
// signs, and when nobody presents ours any more, the Secret becomes what it was.
func (f *facts) leave() decision {
	if f.gone < f.leaveAfter {
		return decision{note: "its IssuedCertificate is gone; the mesh leaves if that stays so"}
	}
	if f.holder != ours || f.cacerts.Annotations[leftAnnotation] != "" {
		return f.cleanUp()
	}
	former := f.former()
	if former == nil {
		return f.stay()
	}
	e := &exchange{facts: f, bundle: former.Roots, next: former.Authority}
	step, err := f.exchangeTo(e, "")
	switch {
	case step != nil:
		return decision{write: step}
	case err == nil && f.left(former):
		return decision{write: f.restore()}
	case err != nil:
		return decision{note: err.Error()}
	case f.mesh == nil:
		return decision{note: fmt.Sprintf("what the mesh holds cannot be seen: %v", f.meshErr)}
	case !same(f.signer(), former.Authority):
		return decision{note: "not everybody trusts the former root yet: " + f.nextStep()}
	}
	return decision{note: "certificates of the VirtualMesh are still in use: " + f.nextStep()}
}

// leaves reports whether the mesh is on its way back to what it had.
func (f *facts) leaves() bool {
	return f.certificate == nil && f.gone >= f.leaveAfter && f.holder == ours
}

// left: the former CA signs, the control plane hands out no other roots than before, and nobody presents a certificate of any
// other CA. When cacerts is deleted, the control plane goes on with what it has.
func (f *facts) left(former *pki.CACerts) bool {
	if f.mesh == nil || !same(f.signer(), former.Authority) || f.mesh.ControlPlane.Done < f.mesh.ControlPlane.Total {
		return false
	}
	return !slices.ContainsFunc(f.mesh.Presented, func(root string) bool { return !slices.Contains(former.Roots.Fingerprints(), root) })
}

// restore puts back the Secret that a user made, byte for byte. If there was none, istiod used its own root, and does so
// again when cacerts is gone.
func (f *facts) restore() *write {
	if f.backup == nil {
		return &write{verb: remove, what: "the mesh has left; istiod goes on with " + SelfSignedName, secret: f.cacerts}
	}
	secret := &corev1.Secret{Type: f.backup.Type}
	if f.cacerts != nil {
		secret = f.cacerts.DeepCopy()
	}
	secret.Namespace, secret.Name = f.at.Namespace, f.at.Name
	secret.Labels, secret.Annotations = decodeMetadata(f.backup)
	secret.Data = f.backup.Data
	return &write{verb: put, what: "what was there before", secret: secret}
}

// stay leaves cacerts as it is, because there is nothing to go back to.
func (f *facts) stay() decision {
	why := fmt.Sprintf("the mesh left its VirtualMesh, and the CA that it had before is in neither Secret %s nor %s; this one goes on, and is not renewed",
		BackupName, SelfSignedName)
	secret := f.cacerts.DeepCopy()
	annotate(secret, map[string]string{leftAnnotation: why})
	return decision{write: &write{verb: put, what: why, secret: secret}}
}

// cleanUp removes the rest, when cacerts is not ours any more.
func (f *facts) cleanUp() decision {
	switch {
	case f.holder == nobodys && f.isOurs(f.backup):
		return decision{write: f.restore()}
	case f.holder != ours && f.isOurs(f.backup) && sameData(f.backup, f.cacerts):
		return decision{write: &write{verb: remove, what: "it was put back", secret: f.backup}}
	}
	return f.forget("the mesh has left")
}

// forget removes the key and then the request, which is the record.
func (f *facts) forget(why string) decision {
	switch {
	case f.key != nil && f.key.Type == KeyType && f.isOurs(f.key):
		return decision{write: &write{verb: remove, what: why, secret: f.key}}
	case f.request != nil:
		return decision{write: &write{verb: remove, what: why, request: f.request}}
	}
	return decision{done: true}
}

// metadata are the parts of a Secret's metadata that are put back.
type metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func encodeMetadata(secret *corev1.Secret) (string, error) {
	text, err := json.Marshal(metadata{secret.Labels, secret.Annotations})
	if err != nil {
		return "", fmt.Errorf("Secret %s/%s: its labels and annotations cannot be copied: %w; remove those that are no UTF-8", secret.Namespace, secret.Name, err)
	}
	return string(text), nil
}

func decodeMetadata(backup *corev1.Secret) (labels, annotations map[string]string) {
	var m metadata
	if json.Unmarshal([]byte(backup.Annotations[metadataAnnotation]), &m) != nil {
		return nil, nil // somebody edited the copy; what counts is the data
	}
	return m.Labels, m.Annotations
}
