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

// remoteObjects are what a registration has on its cluster beside the
// namespace, in the order in which they are written.
func (r *registration) remoteObjects() []*object {
	planes := map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, snapshot.PlaneLabel: r.plane.ID}
	labels := maps.Clone(planes)
	labels[snapshot.ClusterLabel] = r.Name
	subject := rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(r.RemoteNamespace).WithName(r.Name)
	role, binding, own := RoleName(r.plane.ID), BindingName(r.Name, r.plane.ID), TokenRoleName(r.Name)
	out := []*object{
		{
			resource: serviceAccounts, namespace: r.RemoteNamespace, name: r.Name, foreignHint: nameHint,
			want: corev1ac.ServiceAccount(r.Name, r.RemoteNamespace).WithLabels(labels).
				WithAnnotations(map[string]string{ManagementUIDAnnotation: string(r.management.uid)}).
				WithAutomountServiceAccountToken(false),
		},
		{
			resource: clusterRoles, name: role, foreignHint: nameHint,
			want: rbacv1ac.ClusterRole(role).WithLabels(planes).
				WithRules(ruleConfigurations(remoteRules())...),
		},
		{
			resource: clusterRoleBindings, name: binding, foreignHint: nameHint,
			want: rbacv1ac.ClusterRoleBinding(binding).WithLabels(labels).WithSubjects(subject).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(role)),
		},
		{
			resource: roles, namespace: r.RemoteNamespace, name: own, foreignHint: nameHint,
			want: rbacv1ac.Role(own, r.RemoteNamespace).WithLabels(labels).
				WithRules(ruleConfigurations([]rbacv1.PolicyRule{ownTokenRule(r.Name)})...),
		},
		{
			resource: roleBindings, namespace: r.RemoteNamespace, name: own, foreignHint: nameHint,
			want: rbacv1ac.RoleBinding(own, r.RemoteNamespace).WithLabels(labels).WithSubjects(subject).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(own)),
		},
	}
	for _, namespace := range r.meshNamespaces {
		out = append(out, r.settingsObjects(namespace)...)
	}
	return out
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
