package proof

import (
	"slices"

	"github.com/meshctl/meshctl/demo/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

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
