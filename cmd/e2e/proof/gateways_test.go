package proof

import (
	"slices"

	"github.com/meshctl/meshctl/demo/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// knockFacts: a sidecar asks the gateways of another mesh for a service by the
// very name that they let pass.
func knockFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p) {
		if !s.remote || s.plan.Federation.Flat {
			continue
		}
		for _, port := range ports(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: "asked of gateways for " + name, want: []string{doorName(port, subset, s.plan.Federation.Hostname)},
					look: func(told *envoy.Config) []string { return toldSNI(told.Cluster(name)) },
				})
			}
		}
	}
	return out
}

func toldSNI(c *envoy.Cluster) []string {
	if c == nil {
		return []string{"no cluster"}
	}
	out := []string{c.TransportSocket.TypedConfig.SNI}
	for _, match := range c.TransportSocketMatches {
		out = append(out, match.TransportSocket.TypedConfig.SNI)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(sni string) bool { return sni == "" })
}

// openFacts: where access is denied by default, gateways stay open all the same.
func openFacts(plan *snapshot.Plan, p proxy) []fact {
	var want []string
	for _, mesh := range plan.Meshes {
		if mesh.Cluster != p.cluster || mesh.DenyByDefault == nil {
			continue
		}
		want = []string{"nobody"}
		for _, gw := range mesh.OpenGateways {
			if gw.Service.Namespace == p.namespace && contains(p.labels, gw.Selector) {
				want = nil
			}
		}
	}
	return []fact{{name: "who may not pass", want: want, look: toldPassing}}
}

// toldPassing spells the rules that keep anybody out of a gateway. (Istio has
// none for connections that a gateway passes on by their SNI.)
func toldPassing(told *envoy.Config) []string {
	var out []string
	for _, chain := range told.Passed() {
		out = append(out, toldRules(chain, networkRBAC)...)
		out = append(out, toldRules(chain, httpRBAC)...)
	}
	out = slices.DeleteFunc(out, func(rule string) bool { return rule == "everybody" || rule == "any | any" })
	slices.Sort(out)
	return slices.Compact(out)
}
