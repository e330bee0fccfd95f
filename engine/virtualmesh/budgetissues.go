package virtualmesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// excess is what is left out of a mesh because of one limit.
type excess struct {
	mesh *snapshot.MeshPlan
	exceeded
}

func compareExcess(a, b excess) int {
	return cmp.Or(CompareMeshes(a.mesh, b.mesh), strings.Compare(a.at.Name, b.at.Name), cmp.Compare(a.limit, b.limit))
}

// reportLeftOut adds an issue to the VirtualMesh of each mesh with services that are left
// out: one for each namespace, and one for the cluster. It is a warning: a namespace with
// too many services must not make a VirtualMesh invalid.
func (t *Topology) reportLeftOut(b *budget) {
	counts := map[excess]map[string]int{} // of left-out services, by namespace
	for i, l := range b.leftOut {
		e := excess{t.MeshOf(t.inv.Destinations[i]), exceededBy(t.inv, i, l)}
		if counts[e] == nil {
			counts[e] = map[string]int{}
		}
		counts[e][namespaceOf(t.inv, i).Name]++
	}
	totals := map[inventory.Namespace]*tenant{}
	for _, one := range b.tenants {
		totals[one.Namespace] = one
	}
	byMesh := map[*snapshot.MeshPlan]*snapshot.VirtualMeshPlan{}
	for _, vm := range t.VirtualMeshes {
		for _, m := range vm.Members {
			byMesh[m] = vm
		}
	}
	for _, e := range slices.SortedFunc(maps.Keys(counts), compareExcess) {
		vm := byMesh[e.mesh]
		issue := snapshot.Warnf(snapshot.BudgetExceeded, snapshot.LimitHint, "%s; %s", e.message(counts[e], totals[e.at]), b.most.text(e.limit))
		vm.Issues = append(vm.Issues, issue.At("federation").CausedBy(b.most.cause(e.limit)).On(vm.Ref, e.mesh.Ref))
	}
}

// message says what is left out; of is the namespace, nil for a cluster.
func (e excess) message(leftOut map[string]int, of *tenant) string {
	n := 0
	for _, more := range leftOut {
		n += more
	}
	left := fmt.Sprintf("%d are left out, the newest first", n)
	if n == 1 {
		left = "1 is left out, the newest"
	}
	switch e.limit {
	case servicesPerNamespace:
		return fmt.Sprintf("namespace %s of cluster %s has %s to federate, of which %s", e.at.Name, e.at.Cluster, snapshot.Count(of.count, "service"), left)
	case endpointsPerNamespace:
		return fmt.Sprintf("namespace %s of cluster %s has %s to federate, with %s, of which %s",
			e.at.Name, e.at.Cluster, snapshot.Count(of.count, "service"), snapshot.Count(of.endpoints, "endpoint"), left)
	}
	return fmt.Sprintf("cluster %s has too many services to federate, of which %s in each namespace: %s", e.at.Cluster, left, most(leftOut))
}

// shownNamespaces is how many an issue names.
const shownNamespaces = 3

// most lists the namespaces with the highest numbers.
func most(byNamespace map[string]int) string {
	names := slices.SortedFunc(maps.Keys(byNamespace), func(a, b string) int {
		return cmp.Or(cmp.Compare(byNamespace[b], byNamespace[a]), strings.Compare(a, b))
	})
	var out []string
	for _, name := range names[:min(len(names), shownNamespaces)] {
		out = append(out, fmt.Sprintf("%d in namespace %s", byNamespace[name], name))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, "others in "+snapshot.Count(more, "more namespace"))
	}
	return strings.Join(out, ", ")
}
