package agent

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// DiskRules are what ConfigMaps need in the agent's namespace, and no more. Kubernetes cannot restrict create by name.
func DiskRules() []rbacv1.PolicyRule {
	names := make([]string, snapshot.RelayOutputMost)
	for n := range names {
		names[n] = pieceName(n)
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: []string{"delete", "get", "update"}},
	}
}
