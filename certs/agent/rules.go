package agent

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// OwnRules are the rules of the Role in the agent's own namespace. That namespace may be the management plane's, which has the
// keys of roots and the credentials of clusters as Secrets; so the agent may read only Secrets that have the names of its
// meshes.
//
// Kubernetes cannot restrict create by name: the agent can make Secrets of other names there, which gives it nothing that it
// does not have, and cannot read or change them afterwards.
func OwnRules(meshes ...string) []rbacv1.PolicyRule {
	meshes = sorted(meshes)
	group := snapshot.IssuedCertificate.Info().Group
	certificates, requests := snapshot.IssuedCertificate.Info().Resource, snapshot.CertificateRequest.Info().Resource
	directives := snapshot.PodBounceDirective.Info().Resource
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{certificates, directives}, Verbs: []string{"get", "list", "watch"}},
		// A status is applied, which is a patch.
		{APIGroups: []string{group}, Resources: []string{certificates + "/status", directives + "/status"}, Verbs: []string{"patch"}},
		// The status of a request is the issuer's.
		{APIGroups: []string{group}, Resources: []string{requests}, Verbs: []string{"create", "delete", "get", "list", "update", "watch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{LeaseName}, Verbs: []string{"get", "update"}},
	}
	if len(meshes) == 0 { // without names the rule would be about all Secrets
		return rules
	}
	return append(rules, secretRules([]string{"delete", "get", "list", "update", "watch"}, meshes...)...)
}

// MeshRules are the rules of the Role in a namespace with a control plane. Istiod's own root is only read.
func MeshRules() []rbacv1.PolicyRule {
	return append(secretRules([]string{"delete", "get", "list", "update", "watch"}, CACertsName, BackupName),
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{SelfSignedName}, Verbs: []string{"get", "list", "watch"},
		})
}

// secretRules allow to create Secrets, and verbs on those with names. List and watch are of one name, by field selector.
func secretRules(verbs []string, names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: slices.Clone(verbs)},
	}
}
