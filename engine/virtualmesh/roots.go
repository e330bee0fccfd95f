package virtualmesh

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Bounds of what an issue about roots lists.
const (
	maxRootGroups  = 3
	maxRootMembers = 2
	maxRootsNamed  = 2
)

// compareRoots reports members that share no root: the proxies of one accept no
// certificate of the other, so every request between them fails. Nothing that was
// generated is withdrawn because of it.
func compareRoots(plan *snapshot.VirtualMeshPlan) {
	if plan.VirtualMesh.Spec.Federation == nil && plan.VirtualMesh.Spec.MtlsConfig == nil {
		return // nothing makes members call each other
	}
	if isLimited(plan.VirtualMesh) {
		return // their roots differ
	}
	groups, unknown := groupByRoots(plan.Members)
	if len(groups) > 0 && len(unknown) > 0 {
		names := make([]string, len(unknown))
		for i, m := range unknown {
			names[i] = m.Ref.Name
		}
		plan.Issues = append(plan.Issues, snapshot.Issue{
			Code: snapshot.RootsUnknown, Severity: snapshot.Info, Ref: plan.Ref, Hint: unknown[0].Dialect.RootUnknownHint,
			Message: "trusted roots of " + joinNames(names) + " are not known, and not compared with those of the other members",
		})
	}
	g := newGate(plan)
	divided := slices.DeleteFunc(slices.Clone(groups), func(a rootGroup) bool {
		return !slices.ContainsFunc(groups, func(b rootGroup) bool {
			return a[0].Dialect == b[0].Dialect && !a[0].MayShareRoot(b[0]) && g.opensBetween(a, b)
		})
	})
	if len(divided) == 0 {
		return
	}
	for _, g := range divided {
		for _, m := range g {
			plan.Divided = append(plan.Divided, m.Ref)
		}
	}
	slices.SortFunc(plan.Divided, snapshot.Ref.Compare)
	plan.Issues = append(plan.Issues, snapshot.Errorf(snapshot.RootsDiffer, divided[0][0].Dialect.RootHint, "%s", rootsText(divided)).On(plan.Ref, snapshot.Ref{}))
}

// RootsApart is the issue with requests from one mesh to another if the two share no
// root; false if they do, or may do so.
func RootsApart(from, to *snapshot.MeshPlan) (snapshot.Issue, bool) {
	if from.Dialect != to.Dialect || from.Limited && to.Limited || from.MayShareRoot(to) {
		return snapshot.Issue{}, false
	}
	return snapshot.Warnf(snapshot.RootsDiffer, from.Dialect.RootHint, "%s", rootsText([]rootGroup{{from}, {to}})), true
}

// rootGroup are members of one kind that trust the same roots.
type rootGroup []*snapshot.MeshPlan

// groupByRoots groups members by the roots that they trust, the largest group first;
// unknown are those whose roots are not known. Members without certificates of a
// common kind are in neither.
func groupByRoots(members []*snapshot.MeshPlan) (groups []rootGroup, unknown []*snapshot.MeshPlan) {
	at := map[string]int{}
	for _, m := range members {
		switch {
		case !m.Dialect.SPIFFE:
		case len(m.Roots) == 0:
			unknown = append(unknown, m)
		default:
			key := m.Dialect.Type + " " + strings.Join(m.Roots, " ")
			i, found := at[key]
			if !found {
				i, groups = len(groups), append(groups, nil)
				at[key] = i
			}
			groups[i] = append(groups[i], m)
		}
	}
	// Members are in order, so groups of one size are in the order of their first.
	slices.SortStableFunc(groups, func(a, b rootGroup) int { return cmp.Compare(len(b), len(a)) })
	return groups, unknown
}

// rootsText says which meshes trust which roots, and what follows.
func rootsText(divided []rootGroup) string {
	var all []string
	for _, g := range divided {
		all = append(all, g[0].Roots...)
	}
	short := snapshot.ShortFingerprints(all)
	var texts []string
	for _, g := range divided[:min(len(divided), maxRootGroups)] {
		texts = append(texts, g.text(short))
	}
	if len(divided) == 2 && len(divided[0]) == 1 { // the larger group is the first
		return texts[0] + " and " + texts[1] + ", so every request between them fails"
	}
	if more := len(divided) - maxRootGroups; more > 0 {
		texts = append(texts, snapshot.Count(more, "more set")+" of roots")
	}
	return "members trust different roots, so requests between those without a common one fail: " + strings.Join(texts, ", ")
}

// text is "mesh a trusts root 01234567" or "2 meshes trust root 01234567 (a, b)".
func (g rootGroup) text(short func(string) string) string {
	roots := make([]string, len(g[0].Roots))
	for i, root := range g[0].Roots {
		roots[i] = short(root)
	}
	what := "root "
	if len(roots) > 1 {
		what = "roots "
	}
	what += firstOf(roots, maxRootsNamed)
	if len(g) == 1 {
		return "mesh " + g[0].Ref.Name + " trusts " + what
	}
	names := make([]string, len(g))
	for i, m := range g {
		names[i] = m.Ref.Name
	}
	return snapshot.Count(len(g), "mesh") + " trust " + what + " (" + firstOf(names, maxRootMembers) + ")"
}

// firstOf joins the first names and says how many more there are.
func firstOf(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), strconv.Itoa(more)+" more")
	}
	return strings.Join(names, ", ")
}
