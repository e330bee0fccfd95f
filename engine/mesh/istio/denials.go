package istio

import (
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// denials refuse at the pods of the service what AccessPolicies deny: Istio asks DENY rules before ALLOW rules, and closes nothing else
// because of them. No other generated object has a name with a dot in the namespace of a service.
func (r *builder) denials() {
	service, denials := r.plan.Destination.Spec.KubeService, r.plan.Denials
	if denials == nil || len(service.WorkloadSelectorLabels) == 0 {
		return
	}
	spec := &security.AuthorizationPolicy{
		Action:   security.AuthorizationPolicy_DENY,
		Selector: &typev1beta1.WorkloadSelector{MatchLabels: service.WorkloadSelectorLabels},
	}
	for i := range denials.Rules {
		rule := &denials.Rules[i]
		out := accessRule(rule, r.plan.Mesh)
		if rule.Anyone || len(out.From) > 0 {
			spec.Rules = append(spec.Rules, out)
		}
	}
	if len(spec.Rules) == 0 {
		return // all of whom they name are known to gateways only
	}
	var policies []snapshot.Ref
	for _, p := range denials.Policies {
		policies = append(policies, p.Origin.Ref)
	}
	ref := snapshot.Ref{
		Kind: snapshot.AuthorizationPolicy, Cluster: service.Ref.ClusterName, Namespace: service.Ref.Namespace, Name: service.Ref.Name + ".deny",
	}
	r.add(ref, r.content(spec, false, r.parents(false, policies...)))
}

// deniedSources are the callers of a mesh whom rules deny.
func deniedSources(rules []snapshot.EffectiveRule, mesh *snapshot.MeshPlan) (out []*security.Rule_From) {
	for i := range rules {
		for _, s := range rules[i].Sources {
			names := principals(s, mesh)
			if len(s.Identities) > 0 && len(names) == 0 {
				continue // they are of another mesh
			}
			out = append(out, &security.Rule_From{Source: &security.Source{Principals: names, Namespaces: s.Namespaces}})
		}
	}
	return out
}
