package policy

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// sourceReader reads the sources of one AccessPolicy.
type sourceReader struct {
	inv      *inventory.Inventory
	topology *virtualmesh.Topology
	does     verbs
	// issues are those of the sources that were read.
	issues []snapshot.Issue
}

// readSources says whom an AccessPolicy allows, or denies, never more than what is written.
// Sources that certificates cannot express are expanded to the known workloads; a
// source that matches nobody allows nobody.
func readSources(p *networkingv1.AccessPolicy, inv *inventory.Inventory, topology *virtualmesh.Topology) (*snapshot.AccessRule, []snapshot.Issue) {
	r := &sourceReader{inv: inv, topology: topology, does: doesOf(&p.Spec)}
	rule := &snapshot.AccessRule{
		Origin: snapshot.Origin{Ref: snapshot.RefOf(snapshot.AccessPolicy, p), Field: "sourceSelector"},
		Policy: p, Denies: p.Spec.Denies(),
		Anyone: len(p.Spec.SourceSelector) == 0,
		Paths:  p.Spec.AllowedPaths, Methods: p.Spec.AllowedMethods, Ports: p.Spec.AllowedPorts,
	}
	for i := range p.Spec.SourceSelector {
		s := &p.Spec.SourceSelector[i]
		if inventory.NamesAnyone(s) {
			rule.Anyone = true
			continue
		}
		source := snapshot.Source{}
		if m := s.KubeIdentityMatcher; m != nil {
			r.addMatcher(m, &source)
		}
		if refs := s.KubeServiceAccountRefs; refs != nil {
			for _, account := range refs.ServiceAccounts {
				r.addAccount(account, &source)
			}
		}
		slices.SortFunc(source.Identities, compareIdentities)
		source.Identities = slices.Compact(source.Identities)
		if inventory.NeedsBoth(s) {
			issue := snapshot.Warnf(snapshot.SourceNarrowed, "write two selectors to "+r.does.verb+" callers that match either",
				"a sourceSelector with both namespaces and service accounts %s only callers that match both", r.does.does).At("sourceSelector")
			r.report(issue)
			if len(source.Identities) == 0 {
				continue // an empty list of identities would allow everybody in the namespaces
			}
		}
		if len(source.Identities)+len(source.Namespaces) > 0 {
			rule.Sources = append(rule.Sources, source)
		}
	}
	if rule.Anyone {
		rule.Sources = nil
	} else if len(rule.Sources) == 0 {
		r.report(snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelector; until then the policy "+r.does.does+" no caller",
			"sourceSelector matches no known identity").At("sourceSelector"))
	}
	return rule, r.issues
}

// report adds an issue, once.
func (r *sourceReader) report(issue snapshot.Issue) {
	if !slices.Contains(r.issues, issue) {
		r.issues = append(r.issues, issue)
	}
}

func (r *sourceReader) addMatcher(m *commonv1.KubeIdentityMatcher, source *snapshot.Source) {
	if len(m.Clusters) == 0 {
		source.Namespaces = append(source.Namespaces, m.Namespaces...)
		return
	}
	namespaces := m.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, cluster := range m.Clusters {
		for _, domain := range r.trustDomains(cluster) {
			for _, namespace := range namespaces {
				source.Identities = append(source.Identities, snapshot.Identity{Cluster: cluster, TrustDomain: domain, Namespace: namespace})
			}
		}
	}
}

func (r *sourceReader) addAccount(account commonv1.ClusterObjectRef, source *snapshot.Source) {
	clusters := []string{account.ClusterName}
	if account.ClusterName == "" {
		clusters = r.topology.Clusters()
	}
	for _, cluster := range clusters {
		for _, namespace := range r.accountNamespaces(account, cluster) {
			for _, domain := range r.trustDomains(cluster) {
				source.Identities = append(source.Identities, snapshot.Identity{
					Cluster: cluster, TrustDomain: domain, Namespace: namespace, ServiceAccount: account.Name,
				})
			}
		}
	}
}

// accountNamespaces are the namespaces of a service account in a cluster. Identities
// in certificates have no pattern for an account in any namespace, so an account
// without a namespace means those in which workloads run under it.
func (r *sourceReader) accountNamespaces(account commonv1.ClusterObjectRef, cluster string) []string {
	if account.Namespace != "" || account.Name == "" {
		return []string{account.Namespace}
	}
	return r.inv.NamespacesOf(account.Name, cluster)
}

// trustDomains are those of a cluster's meshes. An unknown cluster has none and is
// one issue.
func (r *sourceReader) trustDomains(cluster string) []string {
	domains := r.topology.TrustDomains(cluster)
	if len(domains) > 0 {
		return domains
	}
	if slices.ContainsFunc(r.topology.Meshes, func(m *snapshot.MeshPlan) bool { return m.Cluster == cluster }) {
		return nil // its callers can only reach their own mesh
	}
	r.report(snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelector, or register the cluster",
		"no mesh was discovered in cluster %s, so no caller there can be %s", cluster, r.does.done).At("sourceSelector"))
	return nil
}

// verbs are what a policy does with callers, in words.
type verbs struct{ verb, does, done string }

func doesOf(spec *networkingv1.AccessPolicySpec) verbs {
	if spec.Denies() {
		return verbs{"deny", "denies", "denied"}
	}
	return verbs{"allow", "allows", "allowed"}
}

// identityIssues warns of callers that a mesh cannot identify.
func identityIssues(rule *snapshot.AccessRule, mesh *snapshot.MeshPlan) []snapshot.Issue {
	if !mesh.Dialect.SPIFFE {
		return nil // it identifies callers of its own cluster by other means
	}
	done := "allowed"
	if rule.Denies {
		done = "denied"
	}
	for i := range rule.Sources {
		for _, id := range rule.Sources[i].Identities {
			if id.TrustDomain == snapshot.NoTrustDomain {
				return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
					"run the callers in a mesh like "+mesh.Dialect.Name,
					"callers in cluster %s are not %s: their mesh gives them no SPIFFE identities, and mesh %s cannot verify their identity",
					id.Cluster, done, mesh.Ref.Name).At("sourceSelector")}
			}
			if _, cluster := id.InCluster(); cluster != "" {
				continue // gateways know it, or it cannot connect
			}
			if rule.Denies {
				continue // see inexpressible
			}
			if _, ok := mesh.Names(id); !ok {
				return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
					"give the mesh of cluster "+id.Cluster+" a trust domain of its own in its meshConfig",
					"callers in cluster %s are not allowed: mesh %s reads their trust domain %s as its own, which is %s",
					id.Cluster, mesh.Ref.Name, id.TrustDomain, mesh.TrustDomain).At("sourceSelector")}
			}
		}
	}
	return nil
}

// relayIssues warns of a policy that does not hold for callers of other members of a Limited
// mesh.
func relayIssues(d *snapshot.DestinationPlan, policy snapshot.Ref) []snapshot.Issue {
	if d.Callers == nil || !slices.Contains(d.Callers.NotRelayed, policy) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
		"give all policies on the service that allow callers of other members the same allowedPaths, allowedMethods and allowedPorts",
		"callers of other members are not allowed by it: policies on service %s allow them different requests, and with limited trust the service cannot tell them apart",
		inventory.ServiceName(d.Destination.Spec.KubeService.Ref)).At("sourceSelector")}
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

// openGatewayIssues warns of AccessPolicies on a gateway that a global access policy
// leaves open: its own rule allows everybody, so the policies have no effect.
func openGatewayIssues(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	if !mesh.IsOpenGateway(inventory.ServiceRef(d)) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.GatewayOpen, "protect the services behind it, and exclude the gateway from destinationSelector",
		"gateway %s allows all callers whatever policies say: VirtualMesh %s.%s denies access by default except to gateways",
		inventory.ServiceName(d.Spec.KubeService.Ref), mesh.DenyByDefault.Ref.Name, mesh.DenyByDefault.Ref.Namespace).CausedBy(mesh.DenyByDefault.Ref)}
}
