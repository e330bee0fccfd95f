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

// remoteNamespace is where the ServiceAccount lives. It is only written if it
// is not there or registration made it.
func (r *registration) remoteNamespaceObject() *object {
	return &object{
		resource: namespaces, name: r.RemoteNamespace,
		want: corev1ac.Namespace(r.RemoteNamespace).
			WithLabels(map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, "istio-injection": "disabled"}).
			WithAnnotations(map[string]string{CreatedAnnotation: "true"}),
	}
}

// labels are on each object of a registration.
func (r *registration) labels() map[string]string {
	return map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, snapshot.PlaneLabel: r.plane.ID, snapshot.ClusterLabel: r.Name}
}

// remoteObjects are what a registration has on its cluster beside the
// namespace, in the order in which they are written.
func (r *registration) remoteObjects() []*object {
	labels := r.labels()
	shared := maps.Clone(labels) // by all clusters that lead to this one
	delete(shared, snapshot.ClusterLabel)
	out := []*object{{
		resource: serviceAccounts, namespace: r.RemoteNamespace, name: r.Name, foreignHint: nameHint,
		want: corev1ac.ServiceAccount(r.Name, r.RemoteNamespace).WithLabels(labels).
			WithAnnotations(map[string]string{ManagementUIDAnnotation: string(r.management.uid)}).
			WithAutomountServiceAccountToken(false),
	}}
	out = append(out, r.clusterRoleObjects(RoleName(r.plane.ID), BindingName(r.Name, r.plane.ID), r.Name, shared, labels, remoteRules())...)
	out = append(out, r.roleObjects(r.RemoteNamespace, TokenRoleName(r.Name), r.Name, []rbacv1.PolicyRule{ownTokenRule(r.Name)})...)
	for _, namespace := range r.meshNamespaces {
		out = append(out, r.roleObjects(namespace, SettingsRoleName(r.Name, r.plane.ID), r.Name, []rbacv1.PolicyRule{settingsRule()})...)
	}
	return append(out, r.agentObjects()...)
}

// subject is an account of the registration.
func (r *registration) subject(account string) *rbacv1ac.SubjectApplyConfiguration {
	return rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(r.RemoteNamespace).WithName(account)
}

// clusterRoleObjects give an account rules in all namespaces.
func (r *registration) clusterRoleObjects(role, binding, account string, roleLabels, bindingLabels map[string]string, rules []rbacv1.PolicyRule) []*object {
	return []*object{
		{
			resource: clusterRoles, name: role, foreignHint: nameHint,
			want: rbacv1ac.ClusterRole(role).WithLabels(roleLabels).WithRules(ruleConfigurations(rules)...),
		},
		{
			resource: clusterRoleBindings, name: binding, foreignHint: nameHint,
			want: rbacv1ac.ClusterRoleBinding(binding).WithLabels(bindingLabels).WithSubjects(r.subject(account)).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(role)),
		},
	}
}

// roleObjects give an account rules in a namespace.
func (r *registration) roleObjects(namespace, name, account string, rules []rbacv1.PolicyRule) []*object {
	return []*object{
		{
			resource: roles, namespace: namespace, name: name, foreignHint: nameHint,
			want: rbacv1ac.Role(name, namespace).WithLabels(r.labels()).WithRules(ruleConfigurations(rules)...),
		},
		{
			resource: roleBindings, namespace: namespace, name: name, foreignHint: nameHint,
			want: rbacv1ac.RoleBinding(name, namespace).WithLabels(r.labels()).WithSubjects(r.subject(account)).
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
