package enroll

import rbacv1 "k8s.io/api/rbac/v1"

// KeeperRules are what a Keeper needs in its namespace, and no more. Kubernetes cannot restrict create by name.
func KeeperRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{ClientSecret}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{TokenSecret}, Verbs: []string{"delete", "get"}},
		// By it the hub is known to an agent with a shared token.
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{RootSecret}, Verbs: []string{"get"}},
	}
}
