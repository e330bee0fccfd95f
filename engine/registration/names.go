package registration

import "time"

const (
	// RoleName is the ClusterRole on every registered cluster, shared by all
	// registrations there.
	RoleName = "gloomesh-remote-access"
	// DefaultTokenTTL is the lifetime asked for; the API server may grant less.
	DefaultTokenTTL = 24 * time.Hour
	// MinTokenTTL is the shortest lifetime that API servers grant.
	MinTokenTTL = 10 * time.Minute
	// LeftoverLabel is on the ConfigMap that records what a forced
	// deregistration could not clean; its value is the cluster's name.
	LeftoverLabel = "leftover.registration.multicluster.solo.io"

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
