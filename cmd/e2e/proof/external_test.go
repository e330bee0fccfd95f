package proof

import (
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// externals are the external services in the configuration of a proxy.
func externals(plan *snapshot.Plan, p proxy) []*discoveryv1.ExternalService {
	var out []*discoveryv1.ExternalService
	for _, e := range plan.Externals {
		service := e.Destination.Spec.ExternalService
		seen := slices.ContainsFunc(e.Meshes, func(m *snapshot.MeshPlan) bool { return m.Cluster == p.cluster })
		if seen && knows(sidecarOf(plan, p), service.Hosts[0]) {
			out = append(out, service)
		}
	}
	return out
}

// externalFacts: the endpoints of each, without mutual TLS.
func externalFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, e := range externals(plan, p) {
		for _, host := range e.Hosts {
			for _, port := range e.Ports {
				name := clusterName(host, port.Number, "")
				out = append(out, fact{
					name: "endpoints outside of " + name, want: plannedExternal(e, host, port),
					look: func(config *envoy.Config) []string { return configuredEndpoints(config.EndpointsOf(name), false) },
				})
			}
		}
	}
	return out
}

// plannedExternal: without endpoints, the host itself is resolved.
func plannedExternal(e *discoveryv1.ExternalService, host string, port discoveryv1.ExternalServicePort) []string {
	if len(e.Endpoints) == 0 {
		return []string{fmt.Sprintf("%s:%d", host, port.Number)}
	}
	var out []string
	for _, at := range e.Endpoints {
		number, named := at.Ports[port.Name]
		if !named {
			number = port.Number
		}
		out = append(out, fmt.Sprintf("%s:%d", at.Address, number))
	}
	slices.Sort(out)
	return out
}

// externalMutations are about external services.
func externalMutations() map[string]mutation {
	change := func(change func(*discoveryv1.ExternalService)) func(*snapshot.Plan) bool {
		return func(p *snapshot.Plan) bool {
			var changed []*snapshot.ExternalPlan
			for _, e := range p.Externals {
				own := *e
				own.Destination = e.Destination.DeepCopy()
				change(own.Destination.Spec.ExternalService)
				changed = append(changed, &own)
			}
			p.Externals = changed
			return len(changed) > 0
		}
	}
	return map[string]mutation{
		"external host":     {fact: "services that it knows", plan: change(func(e *discoveryv1.ExternalService) { e.Hosts = []string{"elsewhere.example.com"} })},
		"external endpoint": {fact: "endpoints outside of ", plan: change(func(e *discoveryv1.ExternalService) { e.Endpoints = nil })},
		"external port": {fact: "endpoints outside of ", plan: change(func(e *discoveryv1.ExternalService) {
			for i := range e.Ports {
				e.Ports[i].Number++
			}
		})},
	}
}
