package virtualmesh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxNamed bounds the names in one issue.
const maxNamed = 10

// trustDomainIssues warns of members that others cannot call although they share a
// root: proxies accept callers only if their trust domain is one that the mesh
// accepts.
func trustDomainIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	if plan.VirtualMesh.Spec.Federation == nil || isLimited(plan.VirtualMesh) {
		return nil
	}
	var issues []snapshot.Issue
	for _, to := range plan.Members {
		var domains, from []string
		for _, caller := range plan.Members {
			if caller.Dialect == to.Dialect && to.Dialect.SPIFFE && !to.Accepts(caller.TrustDomain) {
				domains, from = append(domains, caller.TrustDomain), append(from, caller.Ref.Name)
			}
		}
		if len(domains) == 0 {
			continue
		}
		issues = append(issues, snapshot.Warnf(snapshot.TrustDomainForeign, to.Dialect.TrustHint(to.Ref.Name, joinNames(domains), asksForTrustDomains(plan)),
			"mesh %s accepts no callers of trust domain %s, so connections from %s fail", to.Ref.Name, joinNames(domains), joinNames(from)).On(plan.Ref, to.Ref))
	}
	return issues
}

// asksForTrustDomains reports whether a VirtualMesh requires a trust domain for each mesh.
func asksForTrustDomains(plan *snapshot.VirtualMeshPlan) bool {
	mtls := plan.VirtualMesh.Spec.MtlsConfig
	return mtls != nil && mtls.Shared != nil && mtls.Shared.TrustDomainPerMesh
}

// isApart reports whether policies can tell the callers of two members apart.
func isApart(a, b *snapshot.MeshPlan) bool {
	return !a.Dialect.SPIFFE || !sees(a, b) || len(a.CommonTrustDomains(b)) == 0
}

// isDistinct reports whether a member is what a VirtualMesh requires of trust domains.
func isDistinct(plan *snapshot.VirtualMeshPlan, m *snapshot.MeshPlan) bool {
	return !asksForTrustDomains(plan) || !slices.ContainsFunc(plan.Members, func(o *snapshot.MeshPlan) bool { return !isApart(m, o) })
}

// distinctIssues report members whose callers cannot be told apart although the VirtualMesh
// requires it.
func distinctIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	if !asksForTrustDomains(plan) {
		return nil
	}
	const field = "mtlsConfig.shared.trustDomainPerMesh"
	var issues []snapshot.Issue
	for _, m := range plan.Members {
		var others, domains []string
		for _, o := range plan.Members {
			if !isApart(m, o) {
				others, domains = append(others, o.Ref.Name), append(domains, m.CommonTrustDomains(o)...)
			}
		}
		if len(others) > 0 {
			issues = append(issues, snapshot.Errorf(snapshot.IdentityShared,
				"give it a trust domain that is neither that of another member nor an alias of it, or remove "+field,
				"mesh %s has trust domain %s in common with %s, so they do not begin to share services: callers could not be told apart",
				m.Ref.Name, joinNames(domains), joinNames(others)).At(field).On(plan.Ref, m.Ref))
		}
	}
	return issues
}

// leftOutIssues name the namespaces for which the exchange of a root does not wait any more, and what is wrong with the
// annotation that names more.
func leftOutIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	var issues []snapshot.Issue
	if _, problem := snapshot.LeftOut(plan.VirtualMesh.Annotations[snapshot.TrustLeaveOutAnnotation], ""); problem != "" {
		issues = append(issues, snapshot.Warnf(snapshot.FieldInvalid, "separate names by spaces", "%s", problem).At("mtlsConfig").On(plan.Ref, snapshot.Ref{}))
	}
	for _, m := range plan.Members {
		if m.Trust == nil || m.Trust.Report == nil {
			continue
		}
		var names []string
		var first *certificatesv1.NamespaceBehind
		for i := range m.Trust.Report.Behind {
			if b := &m.Trust.Report.Behind[i]; b.LeftOut && b.Namespace != m.Namespace {
				names = append(names, b.Namespace)
				first = cmp.Or(first, b)
			}
		}
		if first == nil {
			continue
		}
		who := "workloads there, such as " + first.First + ","
		if first.Workloads == 0 {
			who = "workloads there, as ConfigMap " + first.Namespace + "/" + m.Dialect.CA.ConfigMap + " says,"
		}
		issues = append(issues, snapshot.Warnf(snapshot.TrustLeftOut,
			fmt.Sprintf("`meshctl mesh restart %s --namespace %s` restarts what can be; delete pods that are no workloads", m.Ref.Name, first.Namespace),
			"the exchange of roots in mesh %s goes on without %s: %s have not taken up what their control plane gives them, and lose their connections",
			m.Ref.Name, joinNames(names), who).At("mtlsConfig").On(plan.Ref, m.Ref))
	}
	return issues
}

// joinNames joins the first names, in order and without duplicates.
func joinNames(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], "others")
	}
	return strings.Join(names, ", ")
}

// callerKey is a caller as its certificate identifies it.
type callerKey struct{ trustDomain, namespace, account string }

// namedCaller is a caller as a policy names it.
type namedCaller struct{ cluster, namespace, account string }

// SharedIdentityIssues warns of callers in clusters that a rule does not name, but
// that the given meshes allow, or deny, all the same: a certificate has a trust domain and no
// cluster.
func (t *Topology) SharedIdentityIssues(rule *snapshot.AccessRule, in []*snapshot.MeshPlan) []snapshot.Issue {
	clusters := map[callerKey][]string{} // that are named
	placed := map[namedCaller]bool{}
	for i := range rule.Sources {
		for _, id := range rule.Sources[i].Identities {
			key := callerKey{id.TrustDomain, id.Namespace, id.ServiceAccount}
			clusters[key] = append(clusters[key], id.Cluster)
			placed[namedCaller{id.Cluster, id.Namespace, id.ServiceAccount}] = true
		}
	}
	isNamed := func(cluster string, key callerKey) bool {
		return placed[namedCaller{cluster, key.namespace, key.account}] || placed[namedCaller{cluster, key.namespace, ""}] || placed[namedCaller{cluster, "", ""}]
	}
	var named, also, by []string
	for _, mesh := range in {
		for _, other := range t.sharingRoot(mesh) {
			for key, of := range clusters {
				id := snapshot.Identity{TrustDomain: key.trustDomain}
				if id.ExpressibleIn(mesh.TrustDomain) && mesh.SameTrustDomain(key.trustDomain, other.IdentityDomain()) && !isNamed(other.Cluster, key) {
					named, also, by = append(named, of...), append(also, other.Cluster), append(by, mesh.Ref.Name)
				}
			}
		}
	}
	if len(also) == 0 {
		return nil
	}
	done := "allowed"
	if rule.Denies {
		done = "denied"
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.IdentityShared,
		"add these clusters, or name no cluster, if that is intended; if not, give each mesh a trust domain that is no alias of another one",
		"callers with the same namespace and service account in %s are also %s: their trust domain does not distinguish them from those in %s (by %s)",
		joinNames(also), done, joinNames(named), joinNames(by)).At("sourceSelector")}
}

// sharingRoot are the meshes that share a root with a mesh, as far as is known;
// itself included.
func (t *Topology) sharingRoot(mesh *snapshot.MeshPlan) []*snapshot.MeshPlan {
	if !mesh.Dialect.SPIFFE {
		return nil
	}
	var out []*snapshot.MeshPlan
	for _, other := range t.Meshes {
		if other == mesh || !mesh.Limited && other.Dialect == mesh.Dialect && mesh.VirtualMesh != nil && other.VirtualMesh == mesh.VirtualMesh {
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
