package istio

import (
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// endpoints are the endpoints of one priority. None has a locality: it would split the
// priority, and for host names that DNS resolves Istio keeps only one locality.
func (v *virtualBuilder) endpoints(priority int, p snapshot.Priority) []*networking.WorkloadEntry {
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
			out = append(out, v.pods(t.Backing)...)
			continue
		}
		// Services behind the same gateways are one endpoint to callers.
		at := t.Through[0].Service.String()
		if !dialled[at] && v.hasEndpoints(p.Targets, t) {
			dialled[at] = true
			out = append(out, v.gateways(t, uint32(scale/addresses(t.Through)))...)
		}
	}
	even(out)
	if priority > 0 {
		for _, e := range out {
			e.Labels[priorityLabel+strconv.Itoa(priority)] = "true"
		}
	}
	return out
}

// hasEndpoints reports whether any service behind the gateways of a target has
// pods to pass connections on to.
func (v *virtualBuilder) hasEndpoints(targets []snapshot.VirtualTarget, t snapshot.VirtualTarget) bool {
	return slices.ContainsFunc(targets, func(o snapshot.VirtualTarget) bool {
		return len(o.Through) > 0 && o.Through[0].Service == t.Through[0].Service && len(v.pods(o.Backing)) > 0
	})
}

// pods are the pods behind a service that have its port.
func (v *virtualBuilder) pods(b *snapshot.BackingPlan) []*networking.WorkloadEntry {
	var out []*networking.WorkloadEntry
	for _, part := range b.Destination.Spec.KubeService.EndpointSubsets {
		at := slices.IndexFunc(part.Ports, func(p discoveryv1.EndpointPort) bool { return p.Name == b.Port.Name })
		if at < 0 {
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

// gateways are the endpoints for the pods behind a service, weighted by their number:
// once, or with subsets once for each set of labels that the subsets use.
func (v *virtualBuilder) gateways(t snapshot.VirtualTarget, scale uint32) []*networking.WorkloadEntry {
	var groups []labelGroup
	for _, pod := range v.pods(t.Backing) {
		labels := map[string]string{}
		for _, s := range v.plan.Subsets {
			for k := range s.Labels {
				if value, ok := pod.Labels[k]; ok {
					labels[k] = value
				}
			}
		}
		key := labelKey(labels)
		at := slices.IndexFunc(groups, func(g labelGroup) bool { return labelKey(g.labels) == key })
		if at < 0 {
			groups = append(groups, labelGroup{labels: labels})
			at = len(groups) - 1
		}
		groups[at].weight += scale
	}
	if len(groups) == 0 { // the pods are those of another service there
		groups = []labelGroup{{weight: scale}}
	}
	var out []*networking.WorkloadEntry
	for _, gw := range t.Through {
		for _, address := range gw.Addresses {
			for _, g := range groups {
				out = append(out, &networking.WorkloadEntry{
					Address: address, Ports: map[string]uint32{v.portName(): gw.Port}, Labels: mutual(g.labels), Weight: g.weight,
				})
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
