package policy

import (
	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// configuredDestinations are the Destinations, by index, for which a policy on one of
// them generates a DestinationRule: itself, and those whose subsets it uses.
func (env *environment) configuredDestinations(self int, connected bool, p *networkingv1.Policy) []int {
	var out []int
	if connected {
		out = append(out, self)
	}
	for _, t := range targets(p) {
		if len(t.Subset) == 0 {
			continue
		}
		if at, ok := env.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}); ok {
			out = append(out, at)
		}
	}
	return out
}

// authorizationPolicyIssues reports the hand-written AuthorizationPolicies that
// select pods of a Destination: those of its namespace and of the root namespace, which
// both may decide about it. An AccessPolicy that is rejected because of them
// stays in force: removing it would allow more callers.
func (env *environment) authorizationPolicyIssues(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	hand := env.handWritten[mesh.Cluster]
	if hand == nil || len(hand.authorizationPolicies) == 0 {
		return nil
	}
	service := d.Spec.KubeService
	var issues []snapshot.Issue
	look := func(list []*istiosecurityv1.AuthorizationPolicy) {
		for _, o := range list {
			if selectsPodsOf(o, service) {
				by := snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: mesh.Cluster, Namespace: o.Namespace, Name: o.Name}
				issues = append(issues, env.handWrittenIssue(by, true, authorizationEffect(o), "express its rules in AccessPolicies, and delete it"))
			}
		}
	}
	look(hand.authorizationPolicies[service.Ref.Namespace])
	if mesh.RootNamespace != service.Ref.Namespace {
		look(hand.authorizationPolicies[mesh.RootNamespace]) // policies in the mesh's root namespace apply everywhere
	}
	return issues
}

// authorizationEffect says what a hand-written AuthorizationPolicy does beside an
// AccessPolicy.
func authorizationEffect(o *istiosecurityv1.AuthorizationPolicy) string {
	switch {
	case o.Spec.Action == security.AuthorizationPolicy_DENY:
		return "denies callers on the same pods, also those that this policy allows"
	case o.Spec.Action == security.AuthorizationPolicy_CUSTOM:
		return "delegates the decision on the same pods to an external authorizer, which may deny callers that this policy allows"
	case len(o.Spec.Rules) == 0:
		return "denies by default on the same pods what no policy allows; what this policy allows stays allowed"
	default:
		return "allows callers on the same pods that this policy does not name"
	}
}

// selectsPodsOf reports whether an AuthorizationPolicy selects pods of a service.
func selectsPodsOf(o *istiosecurityv1.AuthorizationPolicy, service *discoveryv1.KubeService) bool {
	want := o.Spec.GetSelector().GetMatchLabels()
	if len(want) == 0 {
		return true
	}
	known := false
	for _, part := range service.EndpointSubsets {
		for i := range part.Endpoints {
			known = true
			if inventory.MatchLabels(want, part.Endpoints[i].Labels) {
				return true
			}
		}
	}
	if known {
		return false
	}
	for name, value := range want { // without pods, the selectors decide
		if have, ok := service.WorkloadSelectorLabels[name]; ok && have != value {
			return false
		}
	}
	return true
}
