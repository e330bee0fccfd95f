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

// subsetted are the Destinations, by index, about whose connections a policy on
// one of them says something: the one itself, and those of whose subsets it needs.
func (w *world) subsetted(self int, connected bool, p *networkingv1.Policy) []int {
	var out []int
	if connected {
		out = append(out, self)
	}
	for _, t := range targets(p) {
		if len(t.Subset) == 0 {
			continue
		}
		if at, ok := w.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}); ok {
			out = append(out, at)
		}
	}
	return out
}

// alsoGuarded says which AuthorizationPolicies of users are about the pods of a
// Destination that AccessPolicies are about, and what follows. What an
// AccessPolicy asks for stays in force even where it is refused: to take it away
// would let more callers in, not fewer.
func (w *world) alsoGuarded(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	hand := w.byHand[mesh.Cluster]
	if hand == nil || len(hand.access) == 0 {
		return nil
	}
	service := d.Spec.KubeService
	var issues []snapshot.Issue
	look := func(list []*istiosecurityv1.AuthorizationPolicy) {
		for _, o := range list {
			if guards(o, service) {
				by := snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: mesh.Cluster, Namespace: o.Namespace, Name: o.Name}
				issues = append(issues, w.handIssue(by, guarding(o), "say in AccessPolicies who may call, and remove it"))
			}
		}
	}
	look(hand.access[service.Ref.Namespace])
	if mesh.RootNamespace != service.Ref.Namespace {
		look(hand.access[mesh.RootNamespace]) // those of the mesh's root namespace hold everywhere
	}
	return issues
}

// guarding says what an AuthorizationPolicy of a user means beside ours.
func guarding(o *istiosecurityv1.AuthorizationPolicy) string {
	switch {
	case o.Spec.Action == security.AuthorizationPolicy_DENY:
		return "refuses callers on the same pods, also those that this policy lets in"
	case o.Spec.Action == security.AuthorizationPolicy_CUSTOM:
		return "asks another authorizer about callers on the same pods, which may refuse those that this policy lets in"
	case len(o.Spec.Rules) == 0:
		return "denies by default what nothing else allows, on the same pods; what this policy allows is allowed"
	default:
		return "lets callers in on the same pods whom this policy does not name"
	}
}

// guards reports whether an AuthorizationPolicy selects pods of a service.
func guards(o *istiosecurityv1.AuthorizationPolicy, service *discoveryv1.KubeService) bool {
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
	for name, value := range want { // no pod to ask: nothing may contradict
		if have, ok := service.WorkloadSelectorLabels[name]; ok && have != value {
			return false
		}
	}
	return true
}
