package policy

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// accessRule says who an AccessPolicy lets in, never more than what is written:
// what no certificate can be checked for is expanded to what is known, and what
// names nobody lets nobody in.
func (w *world) accessRule(p *networkingv1.AccessPolicy) (*snapshot.AccessRule, []snapshot.Issue) {
	rule := &snapshot.AccessRule{
		Origin: snapshot.Origin{Ref: snapshot.RefOf(snapshot.AccessPolicy, p), Field: "sourceSelector"},
		Policy: p,
		Anyone: len(p.Spec.SourceSelector) == 0,
		Paths:  p.Spec.AllowedPaths, Methods: p.Spec.AllowedMethods, Ports: p.Spec.AllowedPorts,
	}
	var issues []snapshot.Issue
	for i := range p.Spec.SourceSelector {
		s := &p.Spec.SourceSelector[i]
		if inventory.NamesAnyone(s) {
			rule.Anyone = true
			continue
		}
		source := snapshot.Source{}
		if m := s.KubeIdentityMatcher; m != nil {
			w.matcherSource(m, &source, &issues)
		}
		if refs := s.KubeServiceAccountRefs; refs != nil {
			for _, account := range refs.ServiceAccounts {
				w.accountSource(account, &source, &issues)
			}
		}
		slices.SortFunc(source.Identities, compareIdentities)
		source.Identities = slices.Compact(source.Identities)
		if inventory.NeedsBoth(s) {
			issue := snapshot.Warnf(snapshot.SourceNarrowed, "put the two into selectors of their own to take callers that meet either",
				"a sourceSelector with both namespaces and service accounts takes only callers that meet both")
			if !slices.Contains(issues, issue) {
				issues = append(issues, issue)
			}
			if len(source.Identities) == 0 {
				continue // nobody is known, rather than everybody in the namespaces
			}
		}
		if len(source.Identities)+len(source.Namespaces) > 0 {
			rule.Sources = append(rule.Sources, source)
		}
	}
	if rule.Anyone {
		rule.Sources = nil
	} else if len(rule.Sources) == 0 {
		issues = append(issues, snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelector; until then the policy lets nobody in",
			"sourceSelector names no identity that is known"))
	}
	return rule, issues
}

func (w *world) matcherSource(m *commonv1.KubeIdentityMatcher, source *snapshot.Source, issues *[]snapshot.Issue) {
	if len(m.Clusters) == 0 {
		source.Namespaces = append(source.Namespaces, m.Namespaces...)
		return
	}
	namespaces := m.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, cluster := range m.Clusters {
		for _, domain := range w.trustDomains(cluster, issues) {
			for _, namespace := range namespaces {
				source.Identities = append(source.Identities, snapshot.Identity{Cluster: cluster, TrustDomain: domain, Namespace: namespace})
			}
		}
	}
}

func (w *world) accountSource(account commonv1.ClusterObjectRef, source *snapshot.Source, issues *[]snapshot.Issue) {
	clusters := []string{account.ClusterName}
	if account.ClusterName == "" {
		clusters = w.topology.Clusters()
	}
	for _, cluster := range clusters {
		for _, namespace := range w.accountNamespaces(account, cluster) {
			for _, domain := range w.trustDomains(cluster, issues) {
				source.Identities = append(source.Identities, snapshot.Identity{
					Cluster: cluster, TrustDomain: domain, Namespace: namespace, ServiceAccount: account.Name,
				})
			}
		}
	}
}

// accountNamespaces: mesh identities have no pattern for an account's name in
// any namespace, so a name without one stands for where workloads run under it.
func (w *world) accountNamespaces(account commonv1.ClusterObjectRef, cluster string) []string {
	if account.Namespace != "" || account.Name == "" {
		return []string{account.Namespace}
	}
	return w.inv.NamespacesOf(account.Name, cluster)
}

// trustDomains are those of a cluster's meshes; an unknown cluster has none,
// and is an issue once.
func (w *world) trustDomains(cluster string, issues *[]snapshot.Issue) []string {
	domains := w.topology.TrustDomains(cluster)
	if len(domains) > 0 {
		return domains
	}
	if slices.ContainsFunc(w.topology.Meshes, func(m *snapshot.MeshPlan) bool { return m.Cluster == cluster }) {
		return nil // its callers reach their own mesh only
	}
	issue := snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelector, or register the cluster",
		"no mesh was discovered in cluster %s, so nobody there can be let in", cluster)
	if !slices.Contains(*issues, issue) {
		*issues = append(*issues, issue)
	}
	return nil
}

// unnameable warns of callers whom a mesh cannot be told about.
func unnameable(rule *snapshot.AccessRule, mesh *snapshot.MeshPlan) []snapshot.Issue {
	if mesh.Mesh.Spec.Istio == nil {
		return nil // it knows its own cluster's callers by other means
	}
	for i := range rule.Sources {
		for _, id := range rule.Sources[i].Identities {
			if id.TrustDomain == snapshot.NoTrustDomain {
				return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
					"run the callers with sidecars of Istio",
					"callers of cluster %s are not let in: they are in an Open Service Mesh, and mesh %s cannot check who they are",
					id.Cluster, mesh.Ref.Name)}
			}
			if !id.Nameable(mesh.TrustDomain) {
				return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
					"give the mesh of cluster "+id.Cluster+" a trust domain of its own in its meshConfig",
					"callers of cluster %s are not let in: mesh %s takes their trust domain %s for its own, which is %s",
					id.Cluster, mesh.Ref.Name, id.TrustDomain, mesh.TrustDomain)}
			}
		}
	}
	return nil
}

func compareIdentities(a, b snapshot.Identity) int {
	for _, pair := range [][2]string{
		{a.Cluster, b.Cluster}, {a.TrustDomain, b.TrustDomain}, {a.Namespace, b.Namespace}, {a.ServiceAccount, b.ServiceAccount},
	} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}

// keptOpen warns of AccessPolicies on a gateway that a global access policy
// leaves open: what lets everybody in beside them makes them void.
func keptOpen(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	service := inventory.ServiceRef(d)
	if !slices.ContainsFunc(mesh.OpenGateways, func(g snapshot.OpenGateway) bool { return g.Service == service }) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.GatewayOpen, "guard what is behind it, and leave it out of destinationSelector",
		"gateway %s stays open to anybody, whatever policies say: VirtualMesh %s.%s denies access to all but gateways",
		inventory.ServiceName(d.Spec.KubeService.Ref), mesh.DenyByDefault.Ref.Name, mesh.DenyByDefault.Ref.Namespace)}
}
