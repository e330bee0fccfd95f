package registration

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// What `meshctl serve` may do in the management cluster: it reads what users ask for in all
// namespaces and writes its status there; all else it has is in its own namespace. It may not
// read Secrets elsewhere: who keeps a root there allows it to read that one.

// clusterRules are the rules in all namespaces.
func (o *InstallOptions) clusterRules() []rbacv1.PolicyRule {
	return append(serveClusterRules(o.Namespace), o.Webhook.clusterRules(o.Namespace)...)
}

// rules are those in the namespace of the management plane.
func (o *InstallOptions) rules() []rbacv1.PolicyRule {
	return append(serveRules(), o.Webhook.rules()...)
}

// serveClusterRules are the rules in all namespaces.
func serveClusterRules(namespace string) []rbacv1.PolicyRule {
	asked := snapshot.Kinds(snapshot.ManagementSide, snapshot.WriteStatus)
	asked = slices.DeleteFunc(asked, func(k snapshot.Kind) bool { return k.Info().Access&snapshot.Write != 0 })
	return append(
		slices.Concat(
			groupRules(snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write), "", readVerbs...),
			groupRules(asked, "/status", "patch"),
		),
		named(rule("", []string{"namespaces"}, "get"), metav1.NamespaceSystem, namespace),
		// A type that is deleted takes what users asked for with it.
		named(rule(crdResource.Group, []string{crdResource.Resource}, "get"), userTypes()...),
		rule("events.k8s.io", []string{"events"}, "create"),
		// Who asks for the debug endpoint.
		rule("authentication.k8s.io", []string{"tokenreviews"}, "create"),
		rule("authorization.k8s.io", []string{"subjectaccessreviews"}, "create"),
	)
}

// serveRules are the rules in the namespace of the management plane.
func serveRules() []rbacv1.PolicyRule {
	discovered := snapshot.Kinds(snapshot.ManagementSide, snapshot.Write)
	return append(
		slices.Concat(groupRules(discovered, "", "create", "delete", "patch"), groupRules(discovered, "/status", "patch")),
		// Credentials of clusters are renewed, roots are made and dropped.
		rule("", []string{secrets.Resource}, "create", "delete", "get", "list", "patch", "watch"),
		named(rule("", []string{configMaps.Resource}, "get"), cluster.PlaneName),
		// What may be trusted is recorded.
		named(rule("", []string{configMaps.Resource}, "get", "list", "update", "watch"), snapshot.TrustRecord),
		// What changed is recorded for people.
		named(rule("", []string{configMaps.Resource}, "get", "update"), snapshot.ChangesRecord),
		rule("", []string{configMaps.Resource}, "create"),
		named(rule(leases.Group, []string{leases.Resource}, "get", "update"), cluster.LeaseName),
		rule(leases.Group, []string{leases.Resource}, "create"),
	)
}

// groupRules allow verbs on kinds, or a subresource of them: one rule for each API group, in the
// order of the kinds.
func groupRules(kinds []snapshot.Kind, subresource string, verbs ...string) (rules []rbacv1.PolicyRule) {
	for _, k := range kinds {
		info := k.Info()
		i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == info.Group })
		if i < 0 {
			i, rules = len(rules), append(rules, rule(info.Group, nil, verbs...))
		}
		rules[i].Resources = append(rules[i].Resources, info.Resource+subresource)
	}
	return rules
}

// userTypes are the types of what users ask for.
func userTypes() []string {
	var names []string
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch) {
		names = append(names, k.Info().Resource+"."+k.Info().Group)
	}
	return names
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}
