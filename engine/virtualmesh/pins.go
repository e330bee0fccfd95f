package virtualmesh

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// A VirtualMesh with a trust domain for each mesh lets the CA of a member sign for the trust
// domains of that member only. Which ones these are is told by the member itself, in settings
// that whoever administers its cluster can change. So they are pinned: what a member claims when
// the VirtualMesh first has it is recorded on the management cluster, and what it claims later
// changes nothing until an administrator accepts it there. A trust domain is pinned to one member.

// pinTrustDomains replaces what members claim by what is pinned to them, and returns all pins:
// those that are recorded, and those to be recorded.
func pinTrustDomains(plan *snapshot.VirtualMeshPlan, recorded []snapshot.TrustPin) []snapshot.TrustPin {
	if !asksForTrustDomains(plan) {
		return nil
	}
	holder := map[string]string{} // by trust domain
	for _, pin := range recorded {
		for _, domain := range pin.Domains {
			holder[domain] = pin.Mesh
		}
	}
	pins := slices.Clone(recorded)
	var unpinned []*snapshot.MeshPlan
	first := map[[2]string]string{} // by place: revisions of a control plane have one CA
	for _, m := range plan.Members {
		place := [2]string{m.Cluster, m.Namespace}
		if !m.SharesNamespace {
			first[place] = m.Ref.Name
		}
		switch pin := snapshot.PinOf(recorded, first[place]); {
		case pin != nil:
			plan.Issues = append(plan.Issues, holdTo(plan, m, pin, holder)...)
		case canBePinned(m):
			unpinned = append(unpinned, m)
		}
	}
	claims := map[string]int{}
	for _, m := range unpinned {
		claims[m.TrustDomain]++
	}
	for _, m := range unpinned {
		if holder[m.TrustDomain] == "" && claims[m.TrustDomain] == 1 {
			holder[m.TrustDomain] = m.Ref.Name
		}
	}
	for _, m := range unpinned {
		if by := holder[m.TrustDomain]; by != m.Ref.Name {
			if by != "" && !slices.ContainsFunc(plan.Members, func(o *snapshot.MeshPlan) bool { return o.Ref.Name == by }) {
				plan.Issues = append(plan.Issues, claimIssue(plan, m, fmt.Sprintf(
					"mesh %s says that its trust domain is %s, which is that of %s, a former member: it gets no certificate", m.Ref.Name, m.TrustDomain, by)))
			}
			continue // of members, distinctIssues says so
		}
		pin := snapshot.TrustPin{Mesh: m.Ref.Name, Domains: []string{m.TrustDomain}}
		for _, alias := range m.TrustAliases {
			if holder[alias] == "" {
				holder[alias] = m.Ref.Name
				pin.Domains = append(pin.Domains, alias)
			}
		}
		pins = append(pins, pin)
	}
	slices.SortFunc(pins, snapshot.TrustPin.Compare)
	return pins
}

// canBePinned reports whether a mesh has certificates of its own, and its settings name its trust
// domain. One that is only assumed may be because the settings cannot be read.
func canBePinned(m *snapshot.MeshPlan) bool {
	ok, _ := m.Dialect.Supports(snapshot.VirtualMesh, "mtlsConfig")
	return ok && m.TrustDomainSet && !m.SharesNamespace
}

// holdTo replaces what a member claims by its pin, and says what differs.
func holdTo(plan *snapshot.VirtualMeshPlan, m *snapshot.MeshPlan, pin *snapshot.TrustPin, holder map[string]string) []snapshot.Issue {
	var claimed, of []string
	note := func(domain string) bool {
		if pin.Has(domain) {
			return false
		}
		claimed = append(claimed, domain)
		if other := holder[domain]; other != "" {
			of = append(of, other)
		}
		return true
	}
	if note(m.TrustDomain) {
		m.TrustDomain = pin.Domains[0]
	}
	m.TrustAliases = slices.DeleteFunc(slices.Clone(m.TrustAliases), note)
	m.TrustDomainSet = true
	if len(claimed) == 0 {
		return nil
	}
	what := "which is not recorded as its own"
	if len(of) > 0 {
		what = "which is that of " + joinNames(of)
	}
	return []snapshot.Issue{claimIssue(plan, m, fmt.Sprintf(
		"mesh %s says that its trust domain is %s, %s: its certificates and the policies about it stay with %s",
		m.Ref.Name, joinNames(claimed), what, joinNames(pin.Domains)))}
}

func claimIssue(plan *snapshot.VirtualMeshPlan, m *snapshot.MeshPlan, text string) snapshot.Issue {
	return snapshot.Errorf(snapshot.TrustDomainClaimed,
		"if that is meant: `meshctl trust accept "+plan.Ref.Name+"`; else look who has changed the settings of the mesh", "%s", text).
		At("mtlsConfig.shared.trustDomainPerMesh").On(plan.Ref, m.Ref)
}

// unpinnedIssues report members that get no certificate because nothing is pinned to them.
func unpinnedIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	if !asksForTrustDomains(plan) || plan.Trust == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, m := range plan.Members {
		if m.Trust != nil && !m.TrustDomainSet {
			issues = append(issues, snapshot.Errorf(snapshot.TrustDomainClaimed, "set trustDomain in the meshConfig of the mesh",
				"the trust domain of mesh %s is not known, so it gets no certificate", m.Ref.Name).
				At("mtlsConfig.shared.trustDomainPerMesh").On(plan.Ref, m.Ref))
		}
	}
	return issues
}
