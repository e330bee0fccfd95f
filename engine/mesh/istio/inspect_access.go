package istio

import (
	"slices"

	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Access implements snapshot.ByHand: the AuthorizationPolicies that select pods of a service, of its namespace and of the
// root namespace, whose policies apply everywhere.
func (h *handWritten) Access(service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) []snapshot.Intersection {
	if len(h.authorizationPolicies) == 0 {
		return nil
	}
	var out []snapshot.Intersection
	add := func(list []*istiosecurityv1.AuthorizationPolicy) {
		for _, o := range list {
			if selectsPodsOf(o, service) {
				out = append(out, snapshot.Intersection{
					Ref:  snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: mesh.Cluster, Namespace: o.Namespace, Name: o.Name},
					What: authorizationEffect(o), Hint: "express its rules in AccessPolicies, and delete it",
				})
			}
		}
	}
	add(h.authorizationPolicies[service.Ref.Namespace])
	if mesh.RootNamespace != service.Ref.Namespace {
		add(h.authorizationPolicies[mesh.RootNamespace])
	}
	return out
}

// Egress implements snapshot.ByHand: the Sidecars that apply to pods, or no longer do.
func (h *handWritten) Egress(namespace string, pods []map[string]string) []snapshot.Intersection {
	var out []snapshot.Intersection
	for _, o := range h.sidecars[namespace] {
		by := snapshot.Ref{Kind: snapshot.Sidecar, Cluster: h.from.Name, Namespace: namespace, Name: o.Name}
		want := o.Spec.GetWorkloadSelector().GetLabels()
		if len(want) == 0 {
			out = append(out, snapshot.Intersection{
				Ref: by, What: "no longer applies to its pods: a Sidecar that selects pods takes precedence over one for the namespace",
				Hint: "list in ServiceDependencies what the workload calls, or select other workloads",
			})
			continue
		}
		if slices.ContainsFunc(pods, func(labels map[string]string) bool { return inventory.MatchLabels(want, labels) }) {
			out = append(out, snapshot.Intersection{Ref: by, What: "selects the same pods, and the mesh uses the older of the two", Hint: "delete it, or change its selector"})
		}
	}
	return out
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
