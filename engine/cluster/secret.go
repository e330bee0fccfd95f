package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// NewSecret is the Secret of a registration. uid may be empty if unknown.
func NewSecret(namespace, name string, uid types.UID, c *Credential, life Lifetime) (*corev1ac.SecretApplyConfiguration, error) {
	data, err := EncodeKubeconfig(name, c)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{}
	if uid != "" {
		annotations[UIDAnnotation] = string(uid)
	}
	if !life.IsZero() {
		annotations[IssuedAnnotation] = life.Issued.UTC().Format(time.RFC3339)
		annotations[ExpiresAnnotation] = life.Expires.UTC().Format(time.RFC3339)
	}
	return corev1ac.Secret(name, namespace).WithType(SecretType).
		WithLabels(map[string]string{ManagedByLabel: ManagedBy}).WithAnnotations(annotations).
		WithData(map[string][]byte{SecretKey: data}), nil
}

// ParseSecret reads the credential in a Secret. The error is a *KubeconfigError.
func ParseSecret(secret *corev1.Secret) (*Credential, Lifetime, error) {
	if secret.Type != SecretType {
		return nil, Lifetime{}, &KubeconfigError{Reason: fmt.Sprintf("its Secret has type %q instead of %q", secret.Type, SecretType)}
	}
	data, ok := secret.Data[SecretKey]
	if !ok {
		return nil, Lifetime{}, &KubeconfigError{Reason: "its Secret has no key " + SecretKey}
	}
	c, err := ParseKubeconfig(data)
	if err != nil {
		return nil, Lifetime{}, err
	}
	return c, secretLifetime(secret, c.Token), nil
}

// Fingerprint identifies the kubeconfig in a Secret, and reveals nothing of it; empty if there
// is none.
func Fingerprint(secret *corev1.Secret) string {
	if secret == nil || len(secret.Data[SecretKey]) == 0 {
		return ""
	}
	sum := sha256.Sum256(secret.Data[SecretKey])
	return hex.EncodeToString(sum[:8])
}

// writeToken replaces the token in a Secret that is still as it was read: a
// Secret deleted meanwhile is not brought back, and one changed is left alone.
func writeToken(ctx context.Context, clientset kube.Clientset, was *corev1.Secret, c *Credential, life Lifetime) error {
	secret, err := NewSecret(was.Namespace, was.Name, types.UID(was.Annotations[UIDAnnotation]), c, life)
	if err != nil {
		return err
	}
	secret.WithUID(was.UID).WithResourceVersion(was.ResourceVersion)
	_, err = clientset.CoreV1().Secrets(was.Namespace).Apply(ctx, secret, metav1.ApplyOptions{FieldManager: snapshot.FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("secret %s/%s: writing the new token: %w", was.Namespace, was.Name, err)
	}
	return nil
}
