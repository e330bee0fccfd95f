package policy

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// sharedPods says which services have pods in common, in meshes that identify callers by
// certificate: there, what is allowed on a service is allowed to all pods that its
// selector selects, also to those behind other services.
type sharedPods struct {
	// groups are the Destinations in front of the same pods, each with two or more,
	// ascending.
	groups [][]int
	// of lists the groups of a Destination by index.
	of map[int][]int
}

// newSharedPods compares selectors with the labels of the known workloads, which have
// pods or will. A pod may have other labels than the template of its workload says: such
// pods are known where they are ready.
func newSharedPods(inv *inventory.Inventory, topology *virtualmesh.Topology) *sharedPods {
	s := &sharedPods{of: map[int][]int{}}
	seen := map[string]bool{}
	add := func(group []int) {
		slices.Sort(group)
		group = slices.Compact(group)
		if len(group) < 2 {
			return
		}
		if key := fmt.Sprint(group); !seen[key] {
			seen[key] = true
			for _, i := range group {
				s.of[i] = append(s.of[i], len(s.groups))
			}
			s.groups = append(s.groups, group)
		}
	}
	in := map[inventory.Namespace]*selectorIndex{}
	for at, services := range selectingServices(inv, topology) {
		if !selectApart(inv, services) {
			in[at] = newSelectorIndex(inv, services)
		}
	}
	for _, w := range inv.Workloads {
		if k := w.Spec.Kubernetes; k != nil && in[inventory.NamespaceOf(k)] != nil {
			add(in[inventory.NamespaceOf(k)].of(k.PodLabels))
			for _, labels := range k.OtherPodLabels {
				add(in[inventory.NamespaceOf(k)].of(labels))
			}
		}
	}
	for _, f := range in {
		for _, group := range f.labelledPods() {
			add(group)
		}
	}
	return s
}

// selectingServices are the services of each namespace whose mesh applies access to the
// pods that they select.
func selectingServices(inv *inventory.Inventory, topology *virtualmesh.Topology) map[inventory.Namespace][]int {
	out := map[inventory.Namespace][]int{}
	for i, d := range inv.Destinations {
		mesh, k := topology.MeshOf(d), d.Spec.KubeService
		if mesh == nil || mesh.Dialect.ByAccount || k == nil || len(k.WorkloadSelectorLabels) == 0 {
			continue
		}
		at := inventory.Namespace{Cluster: k.Ref.ClusterName, Name: k.Ref.Namespace}
		out[at] = append(out[at], i)
	}
	return out
}

// selectApart reports whether all services select by one label, each another value: then
// no pod is behind two of them.
func selectApart(inv *inventory.Inventory, services []int) bool {
	for label := range inv.Destinations[services[0]].Spec.KubeService.WorkloadSelectorLabels {
		values := make(map[string]bool, len(services))
		if !slices.ContainsFunc(services, func(i int) bool {
			value, ok := inv.Destinations[i].Spec.KubeService.WorkloadSelectorLabels[label]
			same := !ok || values[value]
			values[value] = true
			return same
		}) {
			return true
		}
	}
	return false
}

// selectorIndex finds the services of a namespace that select a pod.
type selectorIndex struct {
	inv *inventory.Inventory
	// services are listed by the label of their selector that the fewest of them have.
	services map[[2]string][]int
}

func newSelectorIndex(inv *inventory.Inventory, services []int) *selectorIndex {
	f := &selectorIndex{inv, map[[2]string][]int{}}
	count := map[[2]string]int{}
	for _, i := range services {
		for name, value := range f.selector(i) {
			count[[2]string{name, value}]++
		}
	}
	for _, i := range services {
		var rarest [2]string
		for name, value := range f.selector(i) {
			if label := [2]string{name, value}; count[rarest] == 0 || count[label] < count[rarest] {
				rarest = label
			}
		}
		f.services[rarest] = append(f.services[rarest], i)
	}
	return f
}

func (f *selectorIndex) selector(i int) map[string]string {
	return f.inv.Destinations[i].Spec.KubeService.WorkloadSelectorLabels
}

// of lists the services that select pods with some labels.
func (f *selectorIndex) of(labels map[string]string) []int {
	var out []int
	for name, value := range labels {
		for _, i := range f.services[[2]string{name, value}] {
			if inventory.MatchLabels(f.selector(i), labels) {
				out = append(out, i)
			}
		}
	}
	return out
}

// labelledPods are the services in front of each pod, by its address, that has other
// labels than the template of its workload: services select it that do not select the
// labels of the template.
func (f *selectorIndex) labelledPods() map[string][]int {
	out := map[string][]int{}
	for _, services := range f.services {
		for _, i := range services {
			for _, subset := range f.inv.Destinations[i].Spec.KubeService.EndpointSubsets {
				if subset.NoProxy && !subset.Machines {
					continue
				}
				for _, e := range subset.Endpoints {
					if !inventory.MatchLabels(f.selector(i), e.Labels) {
						out[e.IpAddress] = append(append(out[e.IpAddress], i), f.of(e.Labels)...)
					}
				}
			}
		}
	}
	return out
}
