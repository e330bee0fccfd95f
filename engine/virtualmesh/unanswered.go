package virtualmesh

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// unanswered says why nobody would answer for a service under the name of its federation; zero if somebody may. That no pod is
// ready says nothing: some will be.
func unanswered(s *discoveryv1.KubeService, mesh *snapshot.MeshPlan) snapshot.Unfederated {
	switch {
	case len(s.Ports) == 0:
		return snapshot.Unfederated{Why: "it has no ports, and proxies pass on connections to ports that they know", Hint: "give the Service the ports that callers in other clusters need"}
	case !slices.ContainsFunc(s.Ports, passesGateways):
		return snapshot.Unfederated{Why: "none of its ports is for TCP, which is all that proxies pass on", Hint: "give the Service a port for TCP, or do not select it"}
	case snapshot.AllAmbient(s):
		return snapshot.Unfederated{
			Why:  snapshot.AmbientText(s) + ", which do not take the mutual TLS of callers in other clusters",
			Hint: mesh.Ambient().Federation,
		}
	case s.NoProxies && snapshot.MachineCount(s) > 0:
		return snapshot.Unfederated{
			Why:  "only WorkloadEntries answer for it, and whoever writes one chooses its address, which other clusters do not get",
			Hint: "let pods answer for it, or write an external Destination",
		}
	case s.NoProxies:
		return snapshot.Unfederated{
			Why:  "nothing that answers for it is a pod with a proxy of the mesh, so that it does not take the mutual TLS of callers in other clusters",
			Hint: "add the proxy to the pods behind it, or write an external Destination for addresses outside of the cluster",
		}
	}
	return snapshot.Unfederated{}
}

// passesGateways reports whether a port is for TCP, which it is if it does not say.
func passesGateways(p discoveryv1.KubeServicePort) bool {
	return p.Protocol == "" || p.Protocol == "TCP"
}

// warnOfUnanswered warns if a selector names a service for which nobody would answer.
func (e *exporter) warnOfUnanswered(d *discoveryv1.Destination, why snapshot.Unfederated) {
	e.warnIfNamed(d, "which is not federated: "+why.Why, why.Hint)
}
