package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// homes makes the gateways in between pass on what arrives: to the pods behind them,
// and to no other gateway.
func (v *virtualBuilder) homes() {
	for _, home := range v.behindGateways() {
		mesh := home[0].Mesh
		host := snapshot.PassedAs(v.plan.Ref, mesh.HostnameSuffix)
		entry := v.entry(host)
		entry.ExportTo = gatewayNamespaces(mesh)
		var priorities []snapshot.Priority
		for _, b := range home {
			priorities = append(priorities, snapshot.Priority{Targets: []snapshot.VirtualTarget{{Backing: b}}})
		}
		entry.Endpoints = v.endpoints(priorities)
		entry.Resolution = resolution(entry.Endpoints)
		v.add(snapshot.ServiceEntry, mesh, host, entry, nil, inCluster(mesh.Cluster, hostNames(entry)))
		if len(home) < 2 && len(v.plan.Subsets) == 0 {
			continue
		}
		rule := &networking.DestinationRule{Host: host, Subsets: subsetsOf(v.plan.Subsets), ExportTo: entry.ExportTo}
		if len(home) > 1 {
			rule.TrafficPolicy = v.trafficPolicy(len(home))
		}
		v.add(snapshot.DestinationRule, mesh, host, rule, nil, inCluster(mesh.Cluster, subsetNames(rule)), v.origins()...)
	}
}

// behindGateways are the services that some mesh reaches through gateways, in
// their order, together with the others of their cluster.
func (v *virtualBuilder) behindGateways() [][]*snapshot.BackingPlan {
	passed := map[*snapshot.BackingPlan]bool{}
	for _, view := range v.views {
		for _, p := range view.Priorities {
			for _, t := range p.Targets {
				if len(t.Through) > 0 {
					passed[t.Backing] = true
				}
			}
		}
	}
	var out [][]*snapshot.BackingPlan
	at := map[string]int{}
	for _, b := range v.plan.Backing {
		if !passed[b] {
			continue
		}
		i, ok := at[b.Mesh.Cluster]
		if !ok {
			i = len(out)
			at[b.Mesh.Cluster], out = i, append(out, nil)
		}
		out[i] = append(out[i], b)
	}
	return out
}
