package cluster

import (
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// SecretType marks the Secrets that hold a cluster's kubeconfig.
	SecretType = "solo.io/kubeconfig"
	// SecretKey is the key of the kubeconfig in such a Secret.
	SecretKey = "kubeconfig"
	// RoleName is the ClusterRole on every registered cluster, shared by all
	// registrations there.
	RoleName = "gloomesh-remote-access"
	// DefaultNamespace holds the objects of the management plane, and on a
	// registered cluster the ServiceAccount.
	DefaultNamespace = snapshot.DefaultNamespace
	// DefaultTokenTTL is the lifetime asked for; the API server may grant less.
	DefaultTokenTTL = 24 * time.Hour
	// MinTokenTTL is the shortest lifetime that API servers grant.
	MinTokenTTL = 10 * time.Minute

	// ManagedByLabel with the value ManagedBy is on every object that
	// registration makes.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel.
	ManagedBy = "meshctl"
	// LeftoverLabel is on the ConfigMap that records what a forced
	// deregistration could not clean; its value is the cluster's name.
	LeftoverLabel = "leftover.registration.multicluster.solo.io"
)

// Annotations of the registry's own objects.
const (
	// UIDAnnotation is the UID of the registered cluster's kube-system
	// namespace: what a cluster is, whatever it is called. On the Secret, the
	// KubernetesCluster and the record of leftovers.
	UIDAnnotation = "registration.multicluster.solo.io/cluster-uid"
	// IssuedAnnotation and ExpiresAnnotation bound the life of the token in a
	// Secret, in RFC 3339 as the registered cluster's clock has it.
	IssuedAnnotation  = "registration.multicluster.solo.io/token-issued-at"
	ExpiresAnnotation = "registration.multicluster.solo.io/token-expires-at"
	// ManagementUIDAnnotation is on the ServiceAccount: the UID of the
	// management cluster's kube-system namespace.
	ManagementUIDAnnotation = "registration.multicluster.solo.io/management-uid"
	// NamespaceAnnotation is on the record of leftovers: the namespace of the
	// ServiceAccount on the cluster.
	NamespaceAnnotation = "registration.multicluster.solo.io/remote-namespace"
	// CreatedAnnotation is on a namespace that registration created, and that
	// deregistration may therefore delete.
	CreatedAnnotation = "registration.multicluster.solo.io/created"
)

// statusManager applies the registration's part of a KubernetesCluster's
// status. It differs from snapshot.FieldManager, under which serve applies the
// conditions there: one manager's apply drops what it no longer names.
const statusManager = "meshctl-registration"

// BindingName is the ClusterRoleBinding of a registration.
func BindingName(cluster string) string {
	return cluster + "-gloomesh-remote-access-clusterrole-binding"
}

// TokenRoleName is the Role, and the RoleBinding, by which a registration may
// renew its own token.
func TokenRoleName(cluster string) string { return cluster + "-gloomesh-token-renewal" }

// LeftoverName is the ConfigMap that records what a forced deregistration left.
func LeftoverName(cluster string) string { return cluster + "-leftovers" }

func serviceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// splitServiceAccountUser is the reverse of serviceAccountUser.
func splitServiceAccountUser(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}
