package inventory

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Namespace is a namespace of a cluster.
type Namespace struct{ Cluster, Name string }

// NamespaceOf is where a workload runs.
func NamespaceOf(k *discoveryv1.KubernetesWorkload) Namespace {
	return Namespace{k.Controller.ClusterName, k.Controller.Namespace}
}

// block is what one mesh has in one namespace of one cluster, by indexes into a
// list, ascending. Most selectors name namespaces or clusters: with blocks they
// need not look at everything there is.
type block struct {
	place   Namespace
	mesh    commonv1.ObjectRef
	members []int
}

// blocks are in the order of their first members.
type blocks []block

// workloadBlocks leaves out what is not of Kubernetes.
func workloadBlocks(list []*discoveryv1.Workload) blocks {
	return blocksOf(len(list), func(i int) (b block, ok bool) {
		if k := list[i].Spec.Kubernetes; k != nil {
			return block{place: Namespace{k.Controller.ClusterName, k.Controller.Namespace}, mesh: list[i].Spec.Mesh}, true
		}
		return b, false
	})
}

// destinationBlocks leaves out what is no Service.
func destinationBlocks(list []*discoveryv1.Destination) blocks {
	return blocksOf(len(list), func(i int) (b block, ok bool) {
		if s := list[i].Spec.KubeService; s != nil {
			return block{place: Namespace{s.Ref.ClusterName, s.Ref.Namespace}}, true
		}
		return b, false
	})
}

func blocksOf(n int, of func(int) (block, bool)) blocks {
	type key struct {
		place Namespace
		mesh  commonv1.ObjectRef
	}
	var out blocks
	at := map[key]int{}
	for i := range n {
		b, ok := of(i)
		if !ok {
			continue
		}
		k := key{b.place, b.mesh}
		in, ok := at[k]
		if !ok {
			in = len(out)
			at[k] = in
			out = append(out, b)
		}
		out[in].members = append(out[in].members, i)
	}
	return out
}

// all lists the members of the blocks that are meant, ascending.
func (b blocks) all(meant func(*block) bool) []int {
	var out []int
	for i := range b {
		if meant(&b[i]) {
			out = append(out, b[i].members...)
		}
	}
	slices.Sort(out)
	return out
}

// area is where something selected can be; empty parts are anywhere.
type area struct{ namespaces, clusters []string }

// areas are where anything that a list of selectors matches can be.
type areas []area

// narrow reports whether any part is left out of all areas.
func (a areas) narrow() bool {
	return !slices.ContainsFunc(a, func(x area) bool { return len(x.namespaces)+len(x.clusters) == 0 })
}

func (a areas) has(p Namespace) bool {
	return slices.ContainsFunc(a, func(x area) bool { return Includes(x.namespaces, p.Name) && Includes(x.clusters, p.Cluster) })
}

func workloadAreas(selectors []commonv1.WorkloadSelector) areas {
	var out areas
	for i := range selectors {
		var at area
		if m := selectors[i].KubeWorkloadMatcher; m != nil {
			at = area{m.Namespaces, m.Clusters}
		}
		out = append(out, at)
	}
	return out
}

func identityAreas(selectors []commonv1.IdentitySelector) areas {
	var out areas
	for i := range selectors {
		s := &selectors[i]
		if s.KubeIdentityMatcher == nil && s.KubeServiceAccountRefs == nil {
			out = append(out, area{})
		}
		if m := s.KubeIdentityMatcher; m != nil {
			out = append(out, area{m.Namespaces, m.Clusters})
		}
		if s.KubeServiceAccountRefs == nil {
			continue
		}
		for _, account := range s.KubeServiceAccountRefs.ServiceAccounts {
			out = append(out, area{unlessEmpty(account.Namespace), unlessEmpty(account.ClusterName)})
		}
	}
	return out
}

func unlessEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// MaxListed bounds the lists that a plan names one by one.
const MaxListed = 200

// WorkloadList is the beginning of a list of workloads, and how many there are.
type WorkloadList struct {
	First []snapshot.Ref
	Count int
}

// SelectWorkloads lists the workloads of some meshes that any selector of a
// TrafficPolicy matches; no selectors match all.
func (inv *Inventory) SelectWorkloads(meshes map[commonv1.ObjectRef]bool, selectors []commonv1.WorkloadSelector) WorkloadList {
	return inv.list(meshes, len(selectors) == 0, workloadAreas(selectors), func(w *discoveryv1.KubernetesWorkload) bool {
		return SelectsWorkload(selectors, w)
	})
}

// SelectIdentities lists the workloads of some meshes whose identities any
// selector of an AccessPolicy names; no selectors name all.
func (inv *Inventory) SelectIdentities(meshes map[commonv1.ObjectRef]bool, selectors []commonv1.IdentitySelector) WorkloadList {
	return inv.list(meshes, len(selectors) == 0, identityAreas(selectors), func(w *discoveryv1.KubernetesWorkload) bool {
		return SelectsIdentity(selectors, w)
	})
}

// list looks for workloads in the areas only: nothing that matches is elsewhere.
func (inv *Inventory) list(meshes map[commonv1.ObjectRef]bool, all bool, where areas, matches func(*discoveryv1.KubernetesWorkload) bool) WorkloadList {
	var out WorkloadList
	if len(meshes) == 0 {
		return out
	}
	add := func(i int) {
		out.Count++
		if len(out.First) < MaxListed {
			out.First = append(out.First, snapshot.RefOf(snapshot.Workload, inv.Workloads[i]))
		}
	}
	look := func(i int) {
		if k := inv.Workloads[i].Spec.Kubernetes; k != nil && matches(k) {
			add(i)
		}
	}
	switch {
	case all:
		total := 0
		for mesh := range meshes {
			total += inv.workloadsOf[mesh]
		}
		for i, workload := range inv.Workloads {
			if out.Count >= min(total, MaxListed) {
				break
			}
			if meshes[workload.Spec.Mesh] {
				add(i)
			}
		}
		out.Count = total
	case where.narrow():
		for _, i := range inv.workloadBlocks.all(func(b *block) bool { return meshes[b.mesh] && where.has(b.place) }) {
			look(i)
		}
	default:
		for i, workload := range inv.Workloads {
			if meshes[workload.Spec.Mesh] {
				look(i)
			}
		}
	}
	return out
}
