package inventory

import (
	"cmp"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Namespace is a namespace of a cluster.
type Namespace struct{ Cluster, Name string }

// NamespaceOf is the namespace of a workload.
func NamespaceOf(k *discoveryv1.KubernetesWorkload) Namespace {
	return Namespace{k.Controller.ClusterName, k.Controller.Namespace}
}

// bucket is what one mesh has in one namespace of one cluster, as ascending indexes
// of a list. Most selectors name namespaces or clusters, so most buckets can be
// skipped.
type bucket struct {
	namespace Namespace
	mesh      commonv1.ObjectRef
	members   []int
}

// namespaceIndex has the buckets in the order of their first members.
type namespaceIndex []bucket

// indexWorkloads leaves out workloads that do not run on Kubernetes.
func indexWorkloads(list []*discoveryv1.Workload) namespaceIndex {
	return newNamespaceIndex(len(list), func(i int) (b bucket, ok bool) {
		if k := list[i].Spec.Kubernetes; k != nil {
			return bucket{namespace: Namespace{k.Controller.ClusterName, k.Controller.Namespace}, mesh: list[i].Spec.Mesh}, true
		}
		return b, false
	})
}

// indexDestinations leaves out what is not a Service.
func indexDestinations(list []*discoveryv1.Destination) namespaceIndex {
	return newNamespaceIndex(len(list), func(i int) (b bucket, ok bool) {
		if s := list[i].Spec.KubeService; s != nil {
			return bucket{namespace: Namespace{s.Ref.ClusterName, s.Ref.Namespace}}, true
		}
		return b, false
	})
}

func newNamespaceIndex(n int, of func(int) (bucket, bool)) namespaceIndex {
	type key struct {
		place Namespace
		mesh  commonv1.ObjectRef
	}
	var out namespaceIndex
	at := map[key]int{}
	for i := range n {
		b, ok := of(i)
		if !ok {
			continue
		}
		k := key{b.namespace, b.mesh}
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

// indexes lists the members of the wanted buckets, ascending.
func (b namespaceIndex) indexes(meant func(*bucket) bool) []int {
	var out []int
	for i := range b {
		if meant(&b[i]) {
			out = append(out, b[i].members...)
		}
	}
	slices.Sort(out)
	return out
}

// scope is where a selector can match; an empty list means anywhere.
type scope struct{ namespaces, clusters []string }

// scopes are where any of several selectors can match.
type scopes []scope

// limited reports whether the scopes exclude anything.
func (a scopes) limited() bool {
	return !slices.ContainsFunc(a, func(x scope) bool { return len(x.namespaces)+len(x.clusters) == 0 })
}

func (a scopes) include(p Namespace) bool {
	return slices.ContainsFunc(a, func(x scope) bool { return Includes(x.namespaces, p.Name) && Includes(x.clusters, p.Cluster) })
}

func workloadScopes(selectors []commonv1.WorkloadSelector) scopes {
	var out scopes
	for i := range selectors {
		var at scope
		if m := selectors[i].KubeWorkloadMatcher; m != nil {
			at = scope{m.Namespaces, m.Clusters}
		}
		out = append(out, at)
	}
	return out
}

func identityScopes(selectors []commonv1.IdentitySelector) scopes {
	var out scopes
	for i := range selectors {
		s := &selectors[i]
		if s.KubeIdentityMatcher == nil && s.KubeServiceAccountRefs == nil {
			out = append(out, scope{})
		}
		if m := s.KubeIdentityMatcher; m != nil {
			out = append(out, scope{m.Namespaces, m.Clusters})
		}
		if s.KubeServiceAccountRefs == nil {
			continue
		}
		for _, account := range s.KubeServiceAccountRefs.ServiceAccounts {
			out = append(out, scope{orAny(account.Namespace), orAny(account.ClusterName)})
		}
	}
	return out
}

func orAny(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// MaxListed bounds the lists of references in a Plan.
const MaxListed = 200

// WorkloadList is the first of some workloads, and their number. Gateways is how many of them are proxies by themselves; it is 0 if no
// selector chose them.
type WorkloadList struct {
	First    []snapshot.Ref
	Count    int
	Gateways int
}

// SelectWorkloads lists the workloads of some meshes that any selector of a
// TrafficPolicy matches; no selectors match all.
func (inv *Inventory) SelectWorkloads(meshes map[commonv1.ObjectRef]bool, selectors []commonv1.WorkloadSelector) WorkloadList {
	all, where := len(selectors) == 0, workloadScopes(selectors)
	if all && inv.anyAmbient(meshes) {
		all, where = false, scopes{{}}
	}
	return inv.listWorkloads(meshes, all, where, func(w *discoveryv1.KubernetesWorkload) bool {
		return SelectsWorkload(selectors, w)
	})
}

// SelectIdentities lists the workloads of some meshes whose identities any selector
// of an AccessPolicy matches; no selectors match all.
func (inv *Inventory) SelectIdentities(meshes map[commonv1.ObjectRef]bool, selectors []commonv1.IdentitySelector) WorkloadList {
	return inv.listWorkloads(meshes, len(selectors) == 0, identityScopes(selectors), func(w *discoveryv1.KubernetesWorkload) bool {
		return SelectsIdentity(selectors, w)
	})
}

// listWorkloads checks the workloads in scope: no other one matches.
func (inv *Inventory) listWorkloads(meshes map[commonv1.ObjectRef]bool, all bool, where scopes, matches func(*discoveryv1.KubernetesWorkload) bool) WorkloadList {
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
			if k.Gateway {
				out.Gateways++
			}
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
	case where.limited():
		for _, i := range inv.workloadIndex.indexes(func(b *bucket) bool { return meshes[b.mesh] && where.include(b.namespace) }) {
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

// Callers lists the indexes of the workloads that any selector of a ServiceDependency matches, ascending; no selectors match all.
func (inv *Inventory) Callers(selectors []commonv1.WorkloadSelector) []int {
	where := workloadScopes(selectors)
	all := len(selectors) == 0 || !where.limited()
	among := inv.workloadIndex.indexes(func(b *bucket) bool { return all || where.include(b.namespace) })
	return slices.DeleteFunc(among, func(at int) bool { return !SelectsWorkload(selectors, inv.Workloads[at].Spec.Kubernetes) })
}

// MeshesOfCallers lists the meshes with workloads that any selector of a ServiceDependency matches, ascending; no selectors
// match all.
func (inv *Inventory) MeshesOfCallers(selectors []commonv1.WorkloadSelector) []commonv1.ObjectRef {
	where := workloadScopes(selectors)
	all := len(selectors) == 0 || !where.limited()
	found := map[commonv1.ObjectRef]bool{}
	for i := range inv.workloadIndex {
		b := &inv.workloadIndex[i]
		if found[b.mesh] || !all && !where.include(b.namespace) {
			continue
		}
		found[b.mesh] = slices.ContainsFunc(b.members, func(at int) bool { return SelectsWorkload(selectors, inv.Workloads[at].Spec.Kubernetes) })
	}
	var out []commonv1.ObjectRef
	for mesh, calls := range found {
		if calls && mesh.Name != "" {
			out = append(out, mesh)
		}
	}
	slices.SortFunc(out, func(a, b commonv1.ObjectRef) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}
