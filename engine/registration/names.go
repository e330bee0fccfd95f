package registration

import (
	"time"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// DefaultTokenTTL is the lifetime asked for; the API server may grant less. It is what
	// an old copy of the Secret is worth at most, against two thirds of it for which serve
	// may be down.
	DefaultTokenTTL = 24 * time.Hour
	// MinTokenTTL is the shortest lifetime that API servers grant.
	MinTokenTTL = cluster.MinTokenLifetime
	// LeftoverLabel is on the ConfigMap that records what a forced
	// deregistration could not clean; its value is the cluster's name.
	LeftoverLabel = "leftover.registration.multicluster.solo.io"

	// ManagementUIDAnnotation is on the ServiceAccount: the UID of the
	// management cluster's kube-system namespace.
	ManagementUIDAnnotation = "registration.multicluster.solo.io/management-uid"
	// NamespaceAnnotation is on the record of leftovers: the namespace of the
	// ServiceAccount on the cluster.
	NamespaceAnnotation = "registration.multicluster.solo.io/remote-namespace"
	// AccountAnnotation is on the pods of the agent: the ServiceAccount of the registration. Another
	// registration has other pods.
	AccountAnnotation = "registration.multicluster.solo.io/account"
	// VaultAnnotation is on what limits the agent: which Vaults it may log in to.
	VaultAnnotation = "registration.multicluster.solo.io/vault"
	// CreatedAnnotation is on a namespace that registration created, and that
	// deregistration may therefore delete.
	CreatedAnnotation = "registration.multicluster.solo.io/created"
)

// statusManager applies the registration's part of a KubernetesCluster's
// status. It differs from snapshot.FieldManager, under which serve applies the
// conditions there: one manager's apply drops what it no longer names.
const statusManager = "meshctl-registration"

// oldRoleName is the ClusterRole that all management planes shared; see RoleName.
const oldRoleName = "gloomesh-remote-access"

// RoleName is the ClusterRole of a management plane on a cluster: two of different versions
// need different permissions.
func RoleName(planeID string) string { return oldRoleName + "-" + planeID }

// BindingName is the ClusterRoleBinding of a registration by a management plane.
func BindingName(cluster, planeID string) string { return cluster + "-" + RoleName(planeID) }

// oldBindingName is what BindingName was when the management planes shared a ClusterRole.
func oldBindingName(cluster string) string {
	return cluster + "-" + oldRoleName + "-clusterrole-binding"
}

// TokenRoleName is the Role, and the RoleBinding, by which a registration may
// renew its own token.
func TokenRoleName(cluster string) string { return cluster + "-gloomesh-token-renewal" }

// TokenPolicyName is the ValidatingAdmissionPolicy, and its binding, that limits the life of the
// tokens of a registration by a management plane.
func TokenPolicyName(cluster, planeID string) string { return TokenRoleName(cluster) + "-" + planeID }

// SettingsRoleName is the Role, and the RoleBinding, by which a registration by a management
// plane reads the settings of meshes. They are in each namespace that had a control plane.
func SettingsRoleName(cluster, planeID string) string {
	return cluster + "-gloomesh-mesh-settings-" + planeID
}

// AgentName is the account of a management plane's agent on a cluster, and all else that it has.
func AgentName(planeID string) string { return snapshot.AgentNamePrefix + planeID }

// moreName is the Role, and the RoleBinding, of Agent.MoreRules.
func moreName(planeID string) string { return AgentName(planeID) + snapshot.AgentMoreSuffix }

// LeftoverName is the ConfigMap that records what a forced deregistration left.
func LeftoverName(cluster string) string { return cluster + "-leftovers" }
