package registration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// readVerbs are what an informer needs; nothing is read one by one.
var readVerbs = []string{"list", "watch"}

// writeVerbs are what drift detection, server-side apply and collection need
// on top: an apply is a patch, and of a missing object also a create.
var writeVerbs = []string{"create", "delete", "list", "patch", "watch"}

// RemoteRules are the rules of the ClusterRole on registered clusters. They
// follow from the kinds: what the engine watches may be read, what it
// translates to may be written, and nothing else (no Secrets; of statuses see answerRule).
// One rule for each API group, set of verbs and set of names, ascending.
func RemoteRules(kinds []snapshot.Kind) []rbacv1.PolicyRule {
	byGroup := map[string]*rbacv1.PolicyRule{}
	for _, k := range kinds {
		info := k.Info()
		verbs := readVerbs
		switch {
		case info.Access&snapshot.Write != 0:
			verbs = writeVerbs
		case info.Access&snapshot.Watch == 0:
			continue
		}
		names := engine.ReadableNames(k)
		key := fmt.Sprint(info.Group, verbs, names)
		if byGroup[key] == nil {
			byGroup[key] = &rbacv1.PolicyRule{APIGroups: []string{info.Group}, Verbs: slices.Clone(verbs), ResourceNames: names}
		}
		byGroup[key].Resources = append(byGroup[key].Resources, info.Resource)
	}
	rules := make([]rbacv1.PolicyRule, 0, len(byGroup))
	for _, rule := range byGroup {
		slices.Sort(rule.Resources)
		rules = append(rules, *rule)
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(strings.Compare(a.APIGroups[0], b.APIGroups[0]), len(a.Verbs)-len(b.Verbs),
			slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return rules
}

// remoteRules are the rules granted today. With policies, those that users of the cluster write are read, and their statuses are
// written.
func remoteRules(policies bool) []rbacv1.PolicyRule {
	rules := append(RemoteRules(snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write)), identityRule(), answerRule(), hostsRule())
	if !policies {
		return rules
	}
	asked := userKinds()
	return slices.Concat(rules, groupRules(asked, "", readVerbs...), groupRules(asked, "/status", "patch"))
}

// userKinds are the kinds of policies that users write in registered clusters.
func userKinds() []snapshot.Kind { return snapshot.Kinds(snapshot.ManagedSide, snapshot.InClusters) }

// answerRule allows to answer the requests of agents for certificates, and not to make any.
func answerRule() rbacv1.PolicyRule {
	info := snapshot.CertificateRequest.Info()
	return rbacv1.PolicyRule{APIGroups: []string{info.Group}, Resources: []string{info.Resource + "/status"}, Verbs: []string{"patch"}}
}

// identityRule allows to read which cluster it is, before anything else is read or written.
func identityRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"},
		ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"},
	}
}

// settingsRule allows to read the ConfigMaps of a namespace that has a control plane: the
// names of those of revisions are not known in advance.
func settingsRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{snapshot.ConfigMap.Info().Resource}, Verbs: slices.Clone(readVerbs),
	}
}

// ownTokenRule allows a ServiceAccount to request a new token of its own, and
// of no other.
func ownTokenRule(serviceAccount string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
		ResourceNames: []string{serviceAccount}, Verbs: []string{"create"},
	}
}
