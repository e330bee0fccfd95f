package proof

import (
	"slices"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sniFacts: a sidecar requests a service from the gateways of another mesh by the
// SNI name that they accept.
func sniFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p) {
		if !s.remote || s.plan.Federation.Flat {
			continue
		}
		for _, port := range ports(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: "requested from gateways for " + name, want: []string{sniName(port, subset, s.plan.Federation.Hostname)},
					look: func(config *envoy.Config) []string { return configuredSNI(config.Cluster(name)) },
				})
			}
		}
	}
	return out
}

func configuredSNI(c *envoy.Cluster) []string {
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

// openFacts: gateways allow all callers, also if access is denied by default.
func openFacts(plan *snapshot.Plan, p proxy) []fact {
	var want []string
	for _, mesh := range plan.Meshes {
		if mesh.Cluster != p.cluster || mesh.DenyByDefault == nil {
			continue
		}
		want = []string{"no one"}
		for _, gw := range mesh.OpenGateways {
			if gw.Service.Namespace == p.namespace && contains(p.labels, gw.Selector) {
				want = nil
			}
		}
	}
	return []fact{{name: "who may not pass", want: want, look: configuredPassing}}
}

// configuredPassing formats the rules of a gateway that deny callers. (Istio has none for
// connections that a gateway routes by SNI.)
func configuredPassing(config *envoy.Config) []string {
	var out []string
	for _, chain := range config.Passed() {
		out = append(out, configuredRules(chain, networkRBAC)...)
		out = append(out, configuredRules(chain, httpRBAC)...)
	}
	out = slices.DeleteFunc(out, func(rule string) bool { return rule == "anyone" || rule == "any | any" })
	slices.Sort(out)
	return slices.Compact(out)
}
