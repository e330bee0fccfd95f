package virtualmesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// budget decides which of the services that are selected to be federated are left out
// because their namespace or cluster has too many.
type budget struct {
	inv    *inventory.Inventory
	stored Addresses
	most   limits
	// leftOut says because of which limit, by index of the Destination.
	leftOut map[int]limit
	// tenants are ascending by cluster and namespace.
	tenants []*tenant
}

// tenant is a namespace that has services to federate.
type tenant struct {
	inventory.Namespace
	// services are by index of the Destination; once ordered, the first ones get their
	// place first.
	services []int
	// held is how many of them are federated.
	held int
	// count and endpoints are those before any is left out.
	count, endpoints int
}

// newBudget adds up what is selected to be federated. The result leaves nothing out yet.
func newBudget(inv *inventory.Inventory, selected []*snapshot.Federation, most limits, stored Addresses) *budget {
	b := &budget{inv: inv, stored: stored, most: most, leftOut: map[int]limit{}}
	byNamespace := map[inventory.Namespace]*tenant{}
	for i, f := range selected {
		if f == nil {
			continue
		}
		at := namespaceOf(inv, i)
		of := byNamespace[at]
		if of == nil {
			of = &tenant{Namespace: at}
			byNamespace[at] = of
			b.tenants = append(b.tenants, of)
		}
		of.services = append(of.services, i)
		of.count++
		of.endpoints += pods(inv.Destinations[i].Spec.KubeService)
	}
	slices.SortFunc(b.tenants, func(a, b *tenant) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
	})
	return b
}

// namespaceOf is that of a service, by index of the Destination.
func namespaceOf(inv *inventory.Inventory, i int) inventory.Namespace {
	service := &inv.Destinations[i].Spec.KubeService.Ref
	return inventory.Namespace{Cluster: service.ClusterName, Name: service.Namespace}
}

// spend leaves out what is beyond the limits. First each namespace keeps to its own, so
// that none is left out because of another one. Then the places of each cluster are shared.
func (b *budget) spend() {
	for at := 0; at < len(b.tenants); {
		end := at
		for end < len(b.tenants) && b.tenants[end].Cluster == b.tenants[at].Cluster {
			end++
		}
		cluster := b.tenants[at:end]
		at = end
		services := 0
		for _, t := range cluster {
			if t.count > b.most.values[servicesPerNamespace] || t.endpoints > b.most.values[endpointsPerNamespace] {
				b.order(t)
				b.keepToNamespace(t)
			}
			services += len(t.services)
		}
		if services > b.most.values[servicesPerCluster] {
			b.keepToCluster(cluster)
		}
	}
}

// order orders the services of a namespace by who gets a place first: those that are
// federated, and of two the older one. Nobody can make a Service older than it is.
func (b *budget) order(t *tenant) {
	var held, added []int
	for _, i := range t.services {
		if b.stored.ofDestination(b.inv.Destinations[i]).IsValid() {
			held = append(held, i)
		} else {
			added = append(added, i)
		}
	}
	byAge := func(i, j int) int { return inventory.CompareAge(b.inv.Destinations[i], b.inv.Destinations[j]) }
	slices.SortFunc(held, byAge)
	slices.SortFunc(added, byAge)
	t.services, t.held = append(held, added...), len(held)
}

// keepToNamespace leaves out, in that order, each service with which its namespace would
// have too many services or endpoints.
func (b *budget) keepToNamespace(t *tenant) {
	kept := make([]int, 0, min(len(t.services), b.most.values[servicesPerNamespace]))
	endpoints := 0
	for _, i := range t.services {
		size := pods(b.inv.Destinations[i].Spec.KubeService)
		switch {
		case len(kept) == b.most.values[servicesPerNamespace]:
			b.leftOut[i] = servicesPerNamespace
		case endpoints+size > b.most.values[endpointsPerNamespace]:
			b.leftOut[i] = endpointsPerNamespace
		default:
			kept = append(kept, i)
			endpoints += size
		}
	}
	t.services = kept
}

// keepToCluster shares the places of a cluster among its namespaces.
func (b *budget) keepToCluster(namespaces []*tenant) {
	held, wanted := make([]int, len(namespaces)), make([]int, len(namespaces))
	for n, t := range namespaces {
		b.order(t)
		held[n], wanted[n] = t.held, len(t.services)
	}
	for n, places := range share(b.most.values[servicesPerCluster], held, wanted) {
		t := namespaces[n]
		for _, i := range t.services[places:] {
			b.leftOut[i] = servicesPerCluster
		}
		t.services = t.services[:places]
	}
}

// share says how many of the places each gets of those that want more than there are
// together. All keep what they hold, and the rest goes to those with the fewest. If there
// are fewer places than are held, which is so once a limit is lowered, those who hold the
// most lose what is too much.
func share(places int, held, wanted []int) []int {
	least, most := held, wanted
	if sum(held) > places {
		least, most = make([]int, len(held)), held
	}
	atLevel := func(level int) []int {
		out := make([]int, len(least))
		for n := range out {
			out[n] = min(max(level, least[n]), most[n])
		}
		return out
	}
	level := sort.Search(places, func(level int) bool { return sum(atLevel(level+1)) > places })
	out := atLevel(level)
	left := places - sum(out)
	for n := range out {
		if left > 0 && out[n] == level && level < most[n] {
			out[n]++
			left--
		}
	}
	return out
}

func sum(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}

// keepToLimits leaves out of federation what is beyond the limits of the Settings, and
// says so once for each namespace or cluster.
func (t *Topology) keepToLimits(stored Addresses) {
	b := newBudget(t.inv, t.federations, limitsOf(t.settings), stored)
	b.spend()
	if len(b.leftOut) == 0 {
		return
	}
	t.selected, t.leftOut = slices.Clone(t.federations), b.leftOut
	for i := range b.leftOut {
		t.federations[i] = nil
	}
	t.reasons = b.reasons()
	t.reportLeftOut(b)
}

// keepsToLimits reports whether the same services are left out as follows from what is
// stored.
func (t *Topology) keepsToLimits(stored Addresses) bool {
	if t.leftOut == nil {
		return true // who is federated matters only where not all can be
	}
	b := newBudget(t.inv, t.selected, limitsOf(t.settings), stored)
	b.spend()
	return maps.Equal(t.leftOut, b.leftOut)
}

// exceeded is a limit of a namespace, or of a cluster if that has no name.
type exceeded struct {
	at    inventory.Namespace
	limit limit
}

func exceededBy(inv *inventory.Inventory, i int, l limit) exceeded {
	e := exceeded{namespaceOf(inv, i), l}
	if l == servicesPerCluster {
		e.at.Name = ""
	}
	return e
}

// reasons say on each service why it is left out. They have no numbers that change with
// each service.
func (b *budget) reasons() map[exceeded]string {
	out := map[exceeded]string{}
	for i, l := range b.leftOut {
		e := exceededBy(b.inv, i, l)
		if out[e] == "" {
			out[e] = e.reason() + "; " + b.most.text(l)
		}
	}
	return out
}

func (e exceeded) reason() string {
	switch e.limit {
	case servicesPerNamespace:
		return fmt.Sprintf("it is one of the newest, and namespace %s of cluster %s has too many services to federate", e.at.Name, e.at.Cluster)
	case endpointsPerNamespace:
		return fmt.Sprintf("with it, namespace %s of cluster %s would have too many endpoints to federate", e.at.Name, e.at.Cluster)
	}
	return fmt.Sprintf("it is one of the newest of its namespace, and cluster %s has too many services to federate", e.at.Cluster)
}

// LeftOut says why a Destination is not federated although a VirtualMesh selects it;
// zero if it is, or if none does.
func (t *Topology) LeftOut(i int) snapshot.Unfederated {
	if l, ok := t.leftOut[i]; ok {
		return snapshot.Unfederated{Why: t.reasons[exceededBy(t.inv, i, l)], Hint: snapshot.LimitHint}
	}
	return t.unanswered[i]
}
