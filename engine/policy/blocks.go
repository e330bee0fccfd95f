package policy

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// block is what one mesh has in one namespace of one cluster, by indexes into a
// list, ascending. Most selectors name namespaces or clusters: with blocks they
// need not look at everything there is.
type block struct {
	place   podPlace
	mesh    commonv1.ObjectRef
	members []int
}

// blocks are in the order of their first members.
type blocks []block

// workloadBlocks leaves out what is not of Kubernetes.
func workloadBlocks(list []*discoveryv1.Workload) blocks {
	return blocksOf(len(list), func(i int) (b block, ok bool) {
		if k := list[i].Spec.Kubernetes; k != nil {
			return block{place: podPlace{k.Controller.ClusterName, k.Controller.Namespace}, mesh: list[i].Spec.Mesh}, true
		}
		return b, false
	})
}

// destinationBlocks leaves out what is no Service.
func destinationBlocks(list []*discoveryv1.Destination) blocks {
	return blocksOf(len(list), func(i int) (b block, ok bool) {
		if s := list[i].Spec.KubeService; s != nil {
			return block{place: podPlace{s.Ref.ClusterName, s.Ref.Namespace}}, true
		}
		return b, false
	})
}

func blocksOf(n int, of func(int) (block, bool)) blocks {
	type key struct {
		place podPlace
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

func (a areas) has(p podPlace) bool {
	return slices.ContainsFunc(a, func(x area) bool { return oneOf(x.namespaces, p.namespace) && oneOf(x.clusters, p.cluster) })
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
