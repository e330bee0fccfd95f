package policy

import (
	"cmp"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// accounts says which workloads run under which service account, in meshes that
// identify callers and services by service account only. Access to an account is
// access to all of its pods, so Destinations that share an account are evaluated
// together.
type accounts struct {
	inv      *inventory.Inventory
	topology *virtualmesh.Topology
	// workloadsOf lists, by Destination, the indexes of the workloads that serve it.
	workloadsOf map[int][]int
	// destinationsOf lists, by workload, the Destinations that it serves.
	destinationsOf map[int][]int
	// pods lists, by account, the workloads that serve any Destination.
	pods map[accountKey][]int
	// groups are the Destinations that share accounts, directly or indirectly, by
	// each of their indexes.
	groups map[int][]int
	// of lists the workloads of each mesh.
	of map[commonv1.ObjectRef][]int
	// ports caches, by account, the pod ports that carry no requests.
	ports map[accountKey]map[uint32]bool
}

type accountKey struct {
	mesh commonv1.ObjectRef
	snapshot.Account
}

// newAccounts indexes the meshes that identify by account.
func newAccounts(inv *inventory.Inventory, topology *virtualmesh.Topology) *accounts {
	a := &accounts{
		inv: inv, topology: topology,
		workloadsOf: map[int][]int{}, destinationsOf: map[int][]int{}, pods: map[accountKey][]int{},
		groups: map[int][]int{}, of: map[commonv1.ObjectRef][]int{},
		ports: map[accountKey]map[uint32]bool{},
	}
	type place struct {
		mesh      commonv1.ObjectRef
		namespace string
	}
	byPlace := map[place][]int{}
	for i, w := range inv.Workloads {
		mesh := topology.Mesh(w.Spec.Mesh)
		if mesh == nil || !mesh.Dialect.ByAccount || w.Spec.Kubernetes == nil {
			continue
		}
		a.of[w.Spec.Mesh] = append(a.of[w.Spec.Mesh], i)
		at := place{w.Spec.Mesh, w.Spec.Kubernetes.Controller.Namespace}
		byPlace[at] = append(byPlace[at], i)
	}
	for i, d := range inv.Destinations {
		mesh := topology.MeshOf(d)
		if mesh == nil || !mesh.Dialect.ByAccount || d.Spec.KubeService == nil || len(d.Spec.KubeService.WorkloadSelectorLabels) == 0 {
			continue
		}
		for _, x := range byPlace[place{*d.Spec.Mesh, d.Spec.KubeService.Ref.Namespace}] {
			if inventory.SelectsPods(d.Spec.KubeService.WorkloadSelectorLabels, inv.Workloads[x].Spec.Kubernetes) {
				a.workloadsOf[i] = append(a.workloadsOf[i], x)
				if len(a.destinationsOf[x]) == 0 {
					key := keyOf(inv.Workloads[x])
					a.pods[key] = append(a.pods[key], x)
				}
				a.destinationsOf[x] = append(a.destinationsOf[x], i)
			}
		}
	}
	a.joinGroups()
	return a
}

// joinGroups groups the Destinations that share an account.
func (a *accounts) joinGroups() {
	destinations := sortedKeys(a.workloadsOf)
	joined := map[int]int{} // each Destination to another one of its group, or to itself
	groupOf := func(i int) int {
		for joined[i] != i {
			joined[i] = joined[joined[i]]
			i = joined[i]
		}
		return i
	}
	first := map[accountKey]int{}
	for _, i := range destinations {
		joined[i] = i
		for _, x := range a.workloadsOf[i] {
			key := keyOf(a.inv.Workloads[x])
			if other, ok := first[key]; ok {
				joined[groupOf(i)] = groupOf(other)
			} else {
				first[key] = i
			}
		}
	}
	members := map[int][]int{}
	for _, i := range destinations {
		members[groupOf(i)] = append(members[groupOf(i)], i)
	}
	for _, i := range destinations {
		a.groups[i] = members[groupOf(i)]
	}
}

// members are the Destinations that are evaluated together with one, itself included.
func (a *accounts) members(i int) []int {
	if g := a.groups[i]; g != nil {
		return g
	}
	return []int{i}
}

// dialect is that of the mesh of a Destination; nil if it is in no mesh.
func (a *accounts) dialect(i int) *snapshot.Dialect {
	return dialectOf(a.topology, a.inv.Destinations[i])
}

// accountsOf are the accounts under which the pods of a Destination run, ascending.
func (a *accounts) accountsOf(i int) []snapshot.Account {
	var out []snapshot.Account
	for _, x := range a.workloadsOf[i] {
		out = append(out, accountOf(a.inv.Workloads[x]))
	}
	slices.SortFunc(out, snapshot.Account.Compare)
	return slices.Compact(out)
}

// accountOf is the service account of a workload's pods.
func accountOf(w *discoveryv1.Workload) snapshot.Account {
	k := w.Spec.Kubernetes
	return snapshot.Account{Namespace: k.Controller.Namespace, Name: cmp.Or(k.ServiceAccountName, "default")}
}

func keyOf(w *discoveryv1.Workload) accountKey { return accountKey{w.Spec.Mesh, accountOf(w)} }

func sortedKeys[V any](m map[int]V) []int {
	out := make([]int, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
