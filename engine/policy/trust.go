package policy

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
		issues = append(issues, on(plan.Ref, to.Ref, warning(snapshot.TrustDomainForeign,
			"add "+listed(domains)+" to trustDomainAliases in the meshConfig of mesh "+to.Ref.Name+
				", or, to have AccessPolicies tell the identities apart, run its istiod with PILOT_SKIP_VALIDATE_TRUST_DOMAIN=true",
			"mesh %s accepts no callers of trust domain %s, so connections from %s fail", to.Ref.Name, listed(domains), listed(from))))
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

// indistinct warns of callers in clusters that a rule does not name, and who
// get in all the same: a certificate has a trust domain and no cluster.
func (g *Groups) indistinct(rule *snapshot.AccessRule, mesh *snapshot.MeshPlan) []snapshot.Issue {
	if mesh.Mesh.Spec.Istio == nil || rule.Anyone {
		return nil
	}
	var named, also []string
	for _, other := range g.Meshes {
		if other.Mesh.Spec.Istio == nil || other != mesh && (mesh.VirtualMesh == nil || other.VirtualMesh != mesh.VirtualMesh) {
			continue // it shares no root with the mesh, as far as is known
		}
		for i := range rule.Sources {
			for _, id := range rule.Sources[i].Identities {
				if id.Cluster != other.Cluster && id.Nameable(mesh.TrustDomain) && mesh.Alike(id.TrustDomain, other.TrustDomain) && !names(rule, other.Cluster, id) {
					named, also = append(named, id.Cluster), append(also, other.Cluster)
				}
			}
		}
	}
	if len(also) == 0 {
		return nil
	}
	return []snapshot.Issue{warning(snapshot.IdentityShared,
		"name these clusters, too, or no cluster, if they are meant; if not, give each mesh a trust domain that is no alias of another's",
		"callers with the same namespace and service account in %s are let in, too: mesh %s cannot tell them from those in %s by their trust domain",
		listed(also), mesh.Ref.Name, listed(named))}
}

// names reports whether a rule names, for a cluster, at least what id is.
func names(rule *snapshot.AccessRule, cluster string, id snapshot.Identity) bool {
	for i := range rule.Sources {
		for _, o := range rule.Sources[i].Identities {
			if o.Cluster == cluster && blankOr(o.Namespace, id.Namespace) && blankOr(o.ServiceAccount, id.ServiceAccount) {
				return true
			}
		}
	}
	return false
}
