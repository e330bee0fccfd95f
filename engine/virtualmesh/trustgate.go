package virtualmesh

import (
	"slices"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// A VirtualMesh with a common trust federates a service only to members that can verify its
// certificates, and whose certificates it can verify. Once two members could, they stay
// federated: a report that is missing, or a certificate that was exchanged by hand, breaks
// nothing that an issue does not say as well.

// gate knows between which members of a VirtualMesh requests can pass.
type gate struct {
	trust *snapshot.TrustPlan
	// first is the mesh whose certificates a member has: itself, or another revision of its
	// control plane.
	first map[snapshot.Ref]*snapshot.MemberTrust
	// distinct: only members whose callers can be told apart.
	distinct bool
}

func newGate(plan *snapshot.VirtualMeshPlan) *gate {
	if plan.Trust == nil {
		return nil
	}
	g := &gate{trust: plan.Trust, first: map[snapshot.Ref]*snapshot.MemberTrust{}, distinct: asksForTrustDomains(plan)}
	for _, m := range plan.Members {
		for _, o := range plan.Members {
			if o.Trust != nil && o.Cluster == m.Cluster && o.Namespace == m.Namespace {
				g.first[m.Ref] = o.Trust
			}
		}
	}
	return g
}

// opens reports whether requests between two members can pass, or have been able to.
func (g *gate) opens(a, b *snapshot.MeshPlan) bool {
	if g == nil {
		return true
	}
	x, y := g.first[a.Ref], g.first[b.Ref]
	switch {
	case x == nil || y == nil:
		return true
	case slices.Contains(g.trust.Established, x.Mesh) && slices.Contains(g.trust.Established, y.Mesh):
		return true
	case g.distinct && !isApart(a, b):
		return false
	}
	return covers(trustedBy(a, x), presentedBy(b, y)) && covers(trustedBy(b, y), presentedBy(a, x))
}

// presentedBy are the roots that a mesh presents: as its agent says or, without one, at most
// those that it hands out. Nil if they are not known and no agent was asked for them.
func presentedBy(mesh *snapshot.MeshPlan, m *snapshot.MemberTrust) []string {
	if m.Report != nil || mesh.Limited {
		return append([]string{}, reported(m).Presented...)
	}
	return mesh.Roots
}

// trustedBy are the roots that all of a mesh trusts: as its agent says or, without one, the one that it hands out. Of several, its
// workloads may have taken up some only. Nil if they are not known and no agent was asked for them.
func trustedBy(mesh *snapshot.MeshPlan, m *snapshot.MemberTrust) []string {
	if m.Report != nil || mesh.Limited || len(mesh.Roots) > 1 {
		return append([]string{}, reported(m).Trusted...)
	}
	return mesh.Roots
}

// reported is what an agent says; without one, that there is nothing.
func reported(m *snapshot.MemberTrust) certificatesv1.TrustReport {
	if m.Report == nil {
		return certificatesv1.TrustReport{}
	}
	return *m.Report
}

// covers reports whether all of some roots are trusted, or may be for all that is known. An
// agent that does not know what its mesh presents says nothing good of it.
func covers(trusted, presented []string) bool {
	return trusted == nil || presented == nil ||
		len(presented) > 0 && !slices.ContainsFunc(presented, func(root string) bool { return !slices.Contains(trusted, root) })
}

// opensBetween reports whether requests between any two members of two groups can pass, or
// have been able to.
func (g *gate) opensBetween(some, others []*snapshot.MeshPlan) bool {
	return slices.ContainsFunc(some, func(a *snapshot.MeshPlan) bool {
		return slices.ContainsFunc(others, func(b *snapshot.MeshPlan) bool { return g.opens(a, b) })
	})
}

// pendingIssues report members whose services are not federated, or to which none are,
// because their trust is not established.
func pendingIssues(plan *snapshot.VirtualMeshPlan, g *gate) []snapshot.Issue {
	if g == nil || !federates(plan.VirtualMesh.Spec.Federation) {
		return nil
	}
	var issues []snapshot.Issue
	for _, m := range plan.Members {
		var from []string
		for _, o := range plan.Members {
			if sees(o, m) && !g.opens(m, o) && (!g.distinct || isApart(m, o)) {
				from = append(from, o.Ref.Name)
			}
		}
		if len(from) == 0 {
			continue
		}
		why := ""
		if first := g.first[m.Ref]; first != nil && first.Message != "" {
			why = ": " + first.Message
		}
		issues = append(issues, snapshot.Warnf(snapshot.TrustPending,
			"`meshctl trust show "+plan.Ref.Name+"` says what they wait for",
			"mesh %s does not share its services with %s until they trust each other%s", m.Ref.Name, joinNames(from), why).
			At("mtlsConfig").On(plan.Ref, m.Ref))
	}
	return issues
}
