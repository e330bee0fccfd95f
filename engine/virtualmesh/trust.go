package virtualmesh

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxNamed bounds what one issue names.
const maxNamed = 10

// foreignIssues warns of members that others cannot call, though they share a
// root: Istio's proxies accept no caller whose certificate is of another trust
// domain than their mesh's own, its aliases, and those of its caCertificates
// (istio.io MeshConfig.trustDomainAliases).
func foreignIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	if plan.VirtualMesh.Spec.Federation == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, to := range plan.Members {
		var domains, from []string
		for _, caller := range plan.Members {
			if caller.Mesh.Spec.Istio != nil && to.Mesh.Spec.Istio != nil && !to.Accepts(caller.TrustDomain) {
				domains, from = append(domains, caller.TrustDomain), append(from, caller.Ref.Name)
			}
		}
		if len(domains) == 0 {
			continue
		}
		issues = append(issues, snapshot.Warnf(snapshot.TrustDomainForeign,
			"add "+listed(domains)+" to trustDomainAliases in the meshConfig of mesh "+to.Ref.Name+
				", or, to have AccessPolicies tell the identities apart, run its istiod with PILOT_SKIP_VALIDATE_TRUST_DOMAIN=true",
			"mesh %s accepts no callers of trust domain %s, so connections from %s fail", to.Ref.Name, listed(domains), listed(from)).On(plan.Ref, to.Ref))
	}
	return issues
}

// listed names the first of a list, in order and once each.
func listed(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], "others")
	}
	return strings.Join(names, ", ")
}

// callerKey is what certificates have of an identity.
type callerKey struct{ trustDomain, namespace, account string }

// placedCaller is what policies have of it.
type placedCaller struct{ cluster, namespace, account string }

// Indistinct warns of callers in clusters that a rule does not name, and whom
// the meshes that it holds in let in all the same: a certificate has a trust
// domain and no cluster.
func (t *Topology) Indistinct(rule *snapshot.AccessRule, in []*snapshot.MeshPlan) []snapshot.Issue {
	clusters := map[callerKey][]string{} // that are named
	placed := map[placedCaller]bool{}
	for i := range rule.Sources {
		for _, id := range rule.Sources[i].Identities {
			key := callerKey{id.TrustDomain, id.Namespace, id.ServiceAccount}
			clusters[key] = append(clusters[key], id.Cluster)
			placed[placedCaller{id.Cluster, id.Namespace, id.ServiceAccount}] = true
		}
	}
	isNamed := func(cluster string, key callerKey) bool {
		return placed[placedCaller{cluster, key.namespace, key.account}] || placed[placedCaller{cluster, key.namespace, ""}] || placed[placedCaller{cluster, "", ""}]
	}
	var named, also, by []string
	for _, mesh := range in {
		for _, other := range t.rooted(mesh) {
			for key, of := range clusters {
				id := snapshot.Identity{TrustDomain: key.trustDomain}
				if id.Nameable(mesh.TrustDomain) && mesh.Alike(key.trustDomain, other.TrustDomain) && !isNamed(other.Cluster, key) {
					named, also, by = append(named, of...), append(also, other.Cluster), append(by, mesh.Ref.Name)
				}
			}
		}
	}
	if len(also) == 0 {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.IdentityShared,
		"name these clusters, too, or no cluster, if they are meant; if not, give each mesh a trust domain that is no alias of another's",
		"callers with the same namespace and service account in %s are let in, too: by their trust domain they cannot be told from those in %s (by %s)",
		listed(also), listed(named), listed(by))}
}

// rooted are the meshes of Istio that share a root with one, as far as is known.
func (t *Topology) rooted(mesh *snapshot.MeshPlan) []*snapshot.MeshPlan {
	if mesh.Mesh.Spec.Istio == nil {
		return nil
	}
	var out []*snapshot.MeshPlan
	for _, other := range t.Meshes {
		if other == mesh || other.Mesh.Spec.Istio != nil && mesh.VirtualMesh != nil && other.VirtualMesh == mesh.VirtualMesh {
			out = append(out, other)
		}
	}
	return out
}

// Clusters are the clusters with meshes whose identities are known, ascending.
func (t *Topology) Clusters() []string {
	var out []string
	for _, m := range t.Meshes {
		if len(t.trustDomains[m.Cluster]) > 0 {
			out = append(out, m.Cluster)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TrustDomains are those of a cluster's meshes.
func (t *Topology) TrustDomains(cluster string) []string { return t.trustDomains[cluster] }
