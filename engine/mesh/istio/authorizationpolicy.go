package istio

import (
	"slices"
	"strconv"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// authorizationPolicy allows the callers that the AccessPolicies on a service name. If
// they allow nobody, the object has no rules, which denies all calls in Istio.
func (r *builder) authorizationPolicy() {
	service := r.plan.Destination.Spec.KubeService
	if len(r.plan.Access) == 0 || len(service.WorkloadSelectorLabels) == 0 {
		return // without labels it would hold for the whole namespace
	}
	spec := &security.AuthorizationPolicy{
		Action:   security.AuthorizationPolicy_ALLOW,
		Selector: &typev1beta1.WorkloadSelector{MatchLabels: service.WorkloadSelectorLabels},
	}
	var policies []snapshot.Ref
	for _, rule := range r.plan.Callers.Rules {
		policies = append(append(policies, rule.Policy), rule.With...)
		out := accessRule(&rule, r.plan.Mesh)
		if rule.Anyone || len(out.From) > 0 {
			spec.Rules = append(spec.Rules, out)
		}
	}
	spec.Rules = append(spec.Rules, r.relayedRules()...)
	for _, rule := range r.plan.Access {
		policies = append(policies, rule.Origin.Ref) // also those that allow nobody
	}
	ref := snapshot.Ref{
		Kind: snapshot.AuthorizationPolicy, Cluster: service.Ref.ClusterName,
		Namespace: service.Ref.Namespace, Name: service.Ref.Name,
	}
	r.add(ref, r.content(spec, false, r.parents(false, policies...)))
}

func accessRule(rule *snapshot.EffectiveRule, mesh *snapshot.MeshPlan) *security.Rule {
	out := &security.Rule{}
	for _, s := range rule.Sources {
		source := &security.Source{Principals: principals(s, mesh)}
		if len(s.Identities) > 0 && len(source.Principals) == 0 {
			continue // none can be named: without them the namespaces would be all of theirs
		}
		source.Namespaces, source.NotPrincipals = s.Namespaces, gatewaysAmong(s, mesh)
		out.From = append(out.From, &security.Rule_From{Source: source})
	}
	out.To = conditions(rule)
	return out
}

// conditions are those of a rule on requests; nil if it has none.
func conditions(rule *snapshot.EffectiveRule) []*security.Rule_To {
	if len(rule.Paths)+len(rule.Methods)+len(rule.PodPorts) == 0 {
		return nil
	}
	var ports []string
	for _, port := range rule.PodPorts {
		ports = append(ports, strconv.FormatUint(uint64(port), 10))
	}
	return []*security.Rule_To{{Operation: &security.Operation{Paths: rule.Paths, Methods: rule.Methods, Ports: ports}}}
}

// principals are the identities of a source that the configuration of a mesh can name,
// ascending.
func principals(s snapshot.Source, mesh *snapshot.MeshPlan) []string {
	var out []string
	for _, id := range s.Identities {
		if domain, ok := mesh.Names(id); ok {
			out = append(out, principal(domain, id))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// principal is an identity as Istio's pattern for source.principals: a
// SPIFFE ID without its scheme, with * at the end for "any".
func principal(trustDomain string, id snapshot.Identity) string {
	out := trustDomain + "/ns/"
	switch {
	case id.Namespace == "":
		return out + "*"
	case id.ServiceAccount == "":
		return out + id.Namespace + "/sa/*"
	default:
		return out + id.Namespace + "/sa/" + id.ServiceAccount
	}
}

// globalAccess denies every request in a mesh that no other policy allows. Gateways are
// exempt.
func globalAccess(plan *snapshot.MeshPlan, namespace string) []*snapshot.Object {
	if plan.DenyByDefault == nil {
		return nil
	}
	vm := []snapshot.Ref{plan.DenyByDefault.Ref}
	name := "global-access-control"
	if plan.SharesRootNamespace {
		name = snapshot.Sanitize(name + "-" + plan.Ref.Name)
	}
	deny := render.NewContent(namespace, &security.AuthorizationPolicy{}, vm, vm)
	deny.Relations.Protects = true
	out := []*snapshot.Object{{
		Ref: snapshot.Ref{
			Kind: snapshot.AuthorizationPolicy, Cluster: plan.Cluster, Namespace: plan.RootNamespace, Name: name,
		},
		Content: deny,
	}}
	for _, gw := range plan.OpenGateways {
		out = append(out, &snapshot.Object{
			Ref: snapshot.Ref{
				Kind: snapshot.AuthorizationPolicy, Cluster: plan.Cluster, Namespace: gw.Service.Namespace,
				Name: snapshot.Sanitize("allow-ingress-gateway-" + gw.Address),
			},
			Content: render.NewContent(namespace, &security.AuthorizationPolicy{
				Action:   security.AuthorizationPolicy_ALLOW,
				Selector: &typev1beta1.WorkloadSelector{MatchLabels: gw.Selector},
				Rules:    []*security.Rule{{}},
			}, vm, vm),
		})
	}
	return out
}
