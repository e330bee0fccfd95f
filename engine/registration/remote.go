package registration

import (
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// nameHint is the next step for objects that meshctl did not create.
const nameHint = "delete it if nobody needs it, or choose another cluster name"

// wantedObjects are what a registration writes.
type wantedObjects struct{ *registration }

func wantedBy(r *registration) wantedObjects { return wantedObjects{r} }

// remoteNamespaceObject is where the ServiceAccount lives. It is only written if it
// is not there or registration made it.
func (r wantedObjects) remoteNamespaceObject() *object {
	return &object{
		resource: namespaces, name: r.RemoteNamespace,
		want: corev1ac.Namespace(r.RemoteNamespace).
			WithLabels(map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, "istio-injection": "disabled"}).
			WithAnnotations(map[string]string{CreatedAnnotation: "true"}),
	}
}

// labels are on each object of a registration.
func (r wantedObjects) labels() map[string]string {
	return map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, snapshot.PlaneLabel: r.plane.ID, snapshot.ClusterLabel: r.Name}
}

// remoteObjects are what a registration has on its cluster beside the
// namespace, in the order in which they are written.
func (r wantedObjects) remoteObjects() []*object {
	switch {
	case r.via.relayed():
		return append(r.via.leaveObjects(), r.via.relayObjects()...)
	}
	labels := r.labels()
	out := []*object{{
		resource: serviceAccounts, namespace: r.RemoteNamespace, name: r.account, foreignHint: nameHint,
		want: corev1ac.ServiceAccount(r.account, r.RemoteNamespace).WithLabels(labels).
			WithAnnotations(map[string]string{ManagementUIDAnnotation: string(r.management.uid)}).
			WithAutomountServiceAccountToken(false),
	}}
	// The limit comes before the right. Those of before cannot make tokens any more.
	out = append(out, r.accountPolicy(TokenPolicyName(r.Name, r.plane.ID), r.account, r.tokenPolicy())...)
	out = append(out, r.roleObjects(r.RemoteNamespace, TokenRoleName(r.Name), []rbacv1.PolicyRule{ownTokenRule(r.account)}, r.account)...)
	out = append(out, r.accessObjects()...)
	return append(out, r.agentObjects()...)
}

// accessObjects are what serve may do on the cluster.
func (r wantedObjects) accessObjects() []*object {
	labels := r.labels()
	shared := maps.Clone(labels) // by all clusters that lead to this one
	delete(shared, snapshot.ClusterLabel)
	out := r.clusterRoleObjects(RoleName(r.plane.ID), BindingName(r.Name, r.plane.ID), shared, labels, remoteRules(r.policies), r.accountNames()...)
	// After the permission: serve goes on writing.
	out = append(out, policyObjects(HostsPolicyName(r.plane.ID), shared, hostsPolicy(r.suffixes))...)
	for _, namespace := range r.meshNamespaces {
		out = append(out, r.roleObjects(namespace, SettingsRoleName(r.Name, r.plane.ID), []rbacv1.PolicyRule{settingsRule()}, r.accountNames()...)...)
	}
	return out
}

// subjects are accounts of the registration.
func (r wantedObjects) subjects(accounts []string) []*rbacv1ac.SubjectApplyConfiguration {
	var out []*rbacv1ac.SubjectApplyConfiguration
	for _, account := range accounts {
		out = append(out, rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(r.RemoteNamespace).WithName(account))
	}
	return out
}

// clusterRoleObjects give accounts rules in all namespaces.
func (r wantedObjects) clusterRoleObjects(role, binding string, roleLabels, bindingLabels map[string]string, rules []rbacv1.PolicyRule, accounts ...string) []*object {
	return []*object{
		{
			resource: clusterRoles, name: role, foreignHint: nameHint,
			want: rbacv1ac.ClusterRole(role).WithLabels(roleLabels).WithRules(ruleConfigurations(rules)...),
		},
		{
			resource: clusterRoleBindings, name: binding, foreignHint: nameHint,
			want: rbacv1ac.ClusterRoleBinding(binding).WithLabels(bindingLabels).WithSubjects(r.subjects(accounts)...).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(role)),
		},
	}
}

// roleObjects give accounts rules in a namespace.
func (r wantedObjects) roleObjects(namespace, name string, rules []rbacv1.PolicyRule, accounts ...string) []*object {
	return []*object{
		{
			resource: roles, namespace: namespace, name: name, foreignHint: nameHint,
			want: rbacv1ac.Role(name, namespace).WithLabels(r.labels()).WithRules(ruleConfigurations(rules)...),
		},
		{
			resource: roleBindings, namespace: namespace, name: name, foreignHint: nameHint,
			want: rbacv1ac.RoleBinding(name, namespace).WithLabels(r.labels()).WithSubjects(r.subjects(accounts)...).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)),
		},
	}
}

func ruleConfigurations(rules []rbacv1.PolicyRule) []*rbacv1ac.PolicyRuleApplyConfiguration {
	out := make([]*rbacv1ac.PolicyRuleApplyConfiguration, len(rules))
	for i, rule := range rules {
		out[i] = rbacv1ac.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).WithVerbs(rule.Verbs...)
		if len(rule.ResourceNames) > 0 {
			out[i].WithResourceNames(rule.ResourceNames...)
		}
	}
	return out
}
