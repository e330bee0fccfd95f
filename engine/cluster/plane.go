package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/kube"
)

const (
	// PlaneName is the ConfigMap, in the management namespace, with the identity of the
	// management plane. A management plane that moves to another cluster takes it along.
	PlaneName = "meshctl-identity"
	// planeKey is the key of the identity in it.
	planeKey = "id"
)

// PlaneID returns the identity of the management plane in a namespace of a management
// cluster: the value of snapshot.PlaneLabel on what it writes. If none is stored yet, it is
// the one that KeepPlaneID stores: it follows from the cluster and the namespace.
func PlaneID(ctx context.Context, management kube.Clientset, namespace string) (string, error) {
	id, _, err := planeID(ctx, management, namespace)
	return id, err
}

// KeepPlaneID is PlaneID, and stores the identity if that was not done before. There is
// nothing to store it in before the namespace exists.
func KeepPlaneID(ctx context.Context, management kube.Clientset, namespace string) (string, error) {
	id, stored, err := planeID(ctx, management, namespace)
	if err != nil || stored {
		return id, err
	}
	_, err = management.CoreV1().ConfigMaps(namespace).Create(ctx, PlaneObject(namespace, id), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return PlaneID(ctx, management, namespace)
	case err != nil && !apierrors.IsNotFound(err):
		return "", fmt.Errorf("ConfigMap %s/%s: storing the identity of the management plane: %w; allow meshctl to create it", namespace, PlaneName, err)
	}
	return id, nil
}

// PlaneObject is what stores an identity.
func PlaneObject(namespace, id string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PlaneName, Labels: map[string]string{ManagedByLabel: ManagedBy}},
		Data:       map[string]string{planeKey: id},
		Immutable:  &immutable,
	}
}

func planeID(ctx context.Context, management kube.Clientset, namespace string) (id string, stored bool, err error) {
	object, err := management.CoreV1().ConfigMaps(namespace).Get(ctx, PlaneName, metav1.GetOptions{})
	switch {
	case err == nil:
		id = object.Data[planeKey]
		if id == "" || len(validation.IsValidLabelValue(id)) > 0 {
			return "", false, &BrokenPlaneError{Namespace: namespace}
		}
		return id, true, nil
	case !apierrors.IsNotFound(err):
		return "", false, fmt.Errorf("ConfigMap %s/%s: reading the identity of the management plane: %w; allow meshctl to get it", namespace, PlaneName, err)
	}
	system, err := management.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", false, fmt.Errorf("namespace %s: reading the identity of the management cluster: %w; allow meshctl to get it", metav1.NamespaceSystem, err)
	}
	sum := sha256.Sum256([]byte(string(system.UID) + "/" + namespace))
	return hex.EncodeToString(sum[:8]), false, nil
}
