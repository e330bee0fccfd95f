package proof

import (
	"slices"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// answers begins the names of facts about who may answer.
const answers = "who may answer as "

// answerFacts: a sidecar accepts only certificates of the service accounts behind a
// service of another mesh.
func answerFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p) {
		if !s.remote || s.plan.WithoutIdentity(s.mesh) != nil {
			continue
		}
		service := s.plan.Destination.Spec.KubeService
		var want []string
		for _, account := range service.ServiceAccounts {
			want = append(want, "spiffe://"+s.plan.Mesh.TrustDomain+"/ns/"+service.Ref.Namespace+"/sa/"+account)
		}
		for _, port := range ports(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: answers + name, want: want,
					look: func(config *envoy.Config) []string { return configuredAnswers(config.Cluster(name)) },
				})
			}
		}
	}
	return out
}

func configuredAnswers(c *envoy.Cluster) []string {
	if c == nil {
		return []string{"no cluster"}
	}
	sockets := []envoy.TransportSocket{c.TransportSocket}
	for _, match := range c.TransportSocketMatches {
		sockets = append(sockets, match.TransportSocket)
	}
	var out []string
	for _, socket := range sockets {
		for _, name := range socket.TypedConfig.CommonTLSContext.CombinedValidationContext.DefaultValidationContext.MatchSubjectAltNames {
			out = append(out, name.Exact)
		}
	}
	slices.Sort(out)
	return out
}
