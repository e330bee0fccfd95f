package istio

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/labels"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// endpoints are the endpoints of all priorities. None has a locality: it would split the
// priority, and for host names that DNS resolves Istio keeps only one locality.
func (v *virtualBuilder) endpoints(priorities []snapshot.Priority) []*networking.WorkloadEntry {
	named := slices.ContainsFunc(priorities, hasNamedGateways)
	var out []*networking.WorkloadEntry
	for i, p := range priorities {
		endpoints := v.priority(p, named)
		if i > 0 {
			for _, e := range endpoints {
				e.Labels[priorityLabel+strconv.Itoa(i)] = "true"
			}
		}
		out = append(out, endpoints...)
	}
	return out
}

// hasNamedGateways reports whether DNS has to resolve the address of a gateway.
func hasNamedGateways(p snapshot.Priority) bool {
	for _, t := range p.Targets {
		for _, gw := range t.Through {
			if slices.ContainsFunc(gw.Addresses, isName) {
				return true
			}
		}
	}
	return false
}

// priority are the endpoints of one priority; named is true if DNS resolves addresses of
// the host, in any priority.
func (v *virtualBuilder) priority(p snapshot.Priority, named bool) []*networking.WorkloadEntry {
	var out []*networking.WorkloadEntry
	scale := 1
	for _, t := range p.Targets {
		if n := addresses(t.Through); n > 0 {
			scale = leastCommonMultiple(scale, n)
		}
	}
	dialled := map[string]bool{}
	for _, t := range p.Targets {
		if len(t.Through) == 0 {
			for _, pod := range v.pods(t.Backing) {
				pod.Weight = uint32(scale)
				out = append(out, pod)
			}
			continue
		}
		// Services behind the same gateways are one endpoint to callers.
		at := t.Through[0].Service.String()
		if dialled[at] {
			continue
		}
		dialled[at] = true
		groups := groupByLabels(v.behind(t, p.Targets), uint32(scale/addresses(t.Through)))
		if !named {
			groups = v.overlapping(groups)
		}
		out = append(out, v.gateways(t.Through, groups)...)
	}
	even(out)
	return out
}

// behind are the labels of the pods behind the gateways of a target.
func (v *virtualBuilder) behind(t snapshot.VirtualTarget, targets []snapshot.VirtualTarget) []map[string]string {
	var out []map[string]string
	for _, o := range targets {
		if len(o.Through) > 0 && o.Through[0].Service == t.Through[0].Service {
			for _, pod := range v.pods(o.Backing) {
				out = append(out, pod.Labels)
			}
		}
	}
	return out
}

// pods are the pods behind a service that have its port, and a proxy: callers of the host come with mutual TLS.
func (v *virtualBuilder) pods(b *snapshot.BackingPlan) []*networking.WorkloadEntry {
	var out []*networking.WorkloadEntry
	for _, part := range b.Destination.Spec.KubeService.EndpointSubsets {
		at := slices.IndexFunc(part.Ports, func(p discoveryv1.EndpointPort) bool { return p.Name == b.Port.Name })
		if at < 0 || snapshot.StaysLocal(&part) {
			continue
		}
		ports := map[string]uint32{v.portName(): part.Ports[at].Port}
		for i := range part.Endpoints {
			e := &part.Endpoints[i]
			out = append(out, &networking.WorkloadEntry{Address: e.IpAddress, Ports: ports, Labels: mutual(e.Labels)})
		}
	}
	return out
}

// overlapping adds groups of groups: of all, and of those that each subset selects. A
// proxy takes the first of several endpoints with one address among those that a subset
// selects, so its weight is that of all the pods, and the weights of clusters stay right.
// Where DNS resolves addresses, a proxy takes all of them and adds up their weights.
func (v *virtualBuilder) overlapping(groups []labelGroup) []labelGroup {
	if len(groups) < 2 {
		return groups
	}
	var all []labelGroup
	for _, subset := range append([]snapshot.Subset{{}}, v.plan.Subsets...) {
		selector := labels.SelectorFromSet(subset.Labels)
		var sum labelGroup
		for _, g := range groups {
			if !selector.Matches(labels.Set(g.labels)) {
				continue
			}
			if sum.weight == 0 {
				sum.labels = maps.Clone(g.labels)
			}
			maps.DeleteFunc(sum.labels, func(k, value string) bool {
				other, ok := g.labels[k]
				return !ok || other != value
			})
			sum.weight += g.weight
		}
		all = append(all, sum)
	}
	all = append(all, groups...)
	slices.SortStableFunc(all, func(a, b labelGroup) int { return cmp.Compare(b.weight, a.weight) })
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(g labelGroup) bool {
		key := labelKey(g.labels)
		again := seen[key] || g.weight == 0
		seen[key] = true
		return again
	})
	// Of several endpoints with one address, Istio compares only the last one with those
	// that follow. When one group is left, it must find a difference.
	return append(all, all[0])
}

// gateways are the addresses of gateways, once for each group of pods behind them.
func (v *virtualBuilder) gateways(through []snapshot.GatewayPlan, groups []labelGroup) []*networking.WorkloadEntry {
	var out []*networking.WorkloadEntry
	for _, gw := range through {
		ports := map[string]uint32{v.portName(): gw.Port}
		for _, address := range gw.Addresses {
			for _, g := range groups {
				out = append(out, &networking.WorkloadEntry{Address: address, Ports: ports, Labels: mutual(g.labels), Weight: g.weight})
			}
		}
	}
	return out
}

// even removes weights that are all equal.
func even(endpoints []*networking.WorkloadEntry) {
	if slices.ContainsFunc(endpoints, func(e *networking.WorkloadEntry) bool { return e.Weight != endpoints[0].Weight }) {
		return
	}
	for _, e := range endpoints {
		e.Weight = 0
	}
}

func addresses(gateways []snapshot.GatewayPlan) int {
	n := 0
	for _, gw := range gateways {
		n += len(gw.Addresses)
	}
	return n
}

func leastCommonMultiple(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
