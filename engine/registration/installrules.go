package registration

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// What `meshctl serve` may do in the management cluster: it reads what users ask for in all
// namespaces and writes its status there; all else it has is in its own namespace. It may not
// read Secrets elsewhere: who keeps a root there allows it to read that one.

// serveClusterRules are the rules in all namespaces.
func serveClusterRules(namespace string) []rbacv1.PolicyRule {
	var statuses []snapshot.Kind
	read := map[string][]string{}
	var groups []string
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write|snapshot.WriteStatus) {
		info := k.Info()
		if read[info.Group] == nil {
			groups = append(groups, info.Group)
		}
		read[info.Group] = append(read[info.Group], info.Resource)
		if info.Access&snapshot.WriteStatus != 0 && info.Access&snapshot.Write == 0 {
			statuses = append(statuses, k)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, group := range groups {
		rules = append(rules, rule(group, read[group], readVerbs...))
	}
	rules = append(rules, statusRules(statuses)...)
	return append(rules,
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
	byGroup := map[string][]string{}
	var groups []string
	for _, k := range discovered {
		info := k.Info()
		if byGroup[info.Group] == nil {
			groups = append(groups, info.Group)
		}
		byGroup[info.Group] = append(byGroup[info.Group], info.Resource)
	}
	var rules []rbacv1.PolicyRule
	for _, group := range groups {
		rules = append(rules, rule(group, byGroup[group], "create", "delete", "patch"))
	}
	rules = append(rules, statusRules(discovered)...)
	return append(rules,
		// Credentials of clusters are renewed, roots are made and dropped.
		rule("", []string{secrets.Resource}, "create", "delete", "get", "list", "patch", "watch"),
		named(rule("", []string{configMaps.Resource}, "get"), cluster.PlaneName),
		rule("", []string{configMaps.Resource}, "create"),
		named(rule(leases.Group, []string{leases.Resource}, "get", "update"), cluster.LeaseName),
		rule(leases.Group, []string{leases.Resource}, "create"),
	)
}

// statusRules allow to write the statuses of kinds.
func statusRules(kinds []snapshot.Kind) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, k := range kinds {
		info := k.Info()
		if n := len(rules); n > 0 && rules[n-1].APIGroups[0] == info.Group {
			rules[n-1].Resources = append(rules[n-1].Resources, info.Resource+"/status")
			continue
		}
		rules = append(rules, rule(info.Group, []string{info.Resource + "/status"}, "patch"))
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
