package istio

import (
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// With limited trust a service sees the gateway that a caller of another member comes from,
// and no more. So access is checked three times: the gateway of the caller's mesh knows the
// caller, that of the service's mesh knows the caller's mesh, and the service knows the
// request.

// relayedRules let in what comes from the mesh's own gateways, where the policies on the
// service allow callers of other members.
func (r *builder) relayedRules() []*security.Rule {
	if r.plan.Federation == nil || !r.plan.Federation.Limited {
		return nil
	}
	gateways, allowed := gatewayPrincipals(r.plan.Mesh), r.plan.Callers.Relayed
	var out []*security.Rule
	for i := range allowed {
		if allowed[i].Anyone || len(gateways) == 0 {
			continue // the rule itself lets them in, too
		}
		out = append(out, &security.Rule{
			From: []*security.Rule_From{{Source: &security.Source{Principals: gateways}}}, To: conditions(&allowed[i]),
		})
	}
	return out[:min(len(out), 1)] // they have the same conditions
}

// gatewayPrincipals are what the gateways of a mesh present to its services, ascending.
func gatewayPrincipals(mesh *snapshot.MeshPlan) []string {
	var out []string
	for _, gw := range mesh.Gateways {
		out = append(out, withoutScheme(gw.Identities)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gatewaysAmong are the gateways that a source for callers of the mesh itself would let in:
// with them come callers of other members, which it does not name.
func gatewaysAmong(s snapshot.Source, mesh *snapshot.MeshPlan) []string {
	if !mesh.Limited {
		return nil
	}
	return slices.DeleteFunc(gatewayPrincipals(mesh), func(principal string) bool {
		_, path, _ := strings.Cut(principal, "/ns/")
		namespace, account, _ := strings.Cut(path, "/sa/")
		among := len(s.Identities) == 0 || slices.ContainsFunc(s.Identities, func(id snapshot.Identity) bool {
			_, ok := mesh.Names(id)
			return ok && (id.Namespace == "" || id.Namespace == namespace) && (id.ServiceAccount == "" || id.ServiceAccount == account)
		})
		return !among || len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, namespace)
	})
}

// admitted makes the gateways of a mesh refuse connections for the service that no
// AccessPolicy allows, or that one denies: those of the service's mesh know members, and those of callers know
// callers.
func (r *builder) admitted(mesh *snapshot.MeshPlan, home bool) {
	f := r.plan.Federation
	var rules []*security.Rule
	var policies []snapshot.Ref
	if rule := r.notAdmitted(mesh, home); rule != nil {
		rules = append(rules, rule)
		for _, access := range r.plan.Access {
			policies = append(policies, access.Origin.Ref)
		}
	}
	if !home && r.plan.Denials != nil {
		if from := deniedSources(r.plan.Denials.Relayed, mesh); len(from) > 0 {
			rules = append(rules, &security.Rule{From: from})
		}
		for _, denial := range r.plan.Denials.Policies {
			policies = append(policies, denial.Origin.Ref)
		}
	}
	if len(rules) == 0 {
		return
	}
	for _, rule := range rules {
		rule.When = []*security.Condition{{Key: "connection.sni", Values: []string{snapshot.RelayedSNIs(f.Hostname)}}}
	}
	for _, gw := range mesh.Gateways {
		if gw.Shared {
			continue
		}
		r.add(snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: relayName(f.Hostname, gw)},
			r.content(&security.AuthorizationPolicy{
				Action:   security.AuthorizationPolicy_DENY,
				Selector: &typev1beta1.WorkloadSelector{MatchLabels: gw.Selector},
				Rules:    rules,
			}, true, r.parents(true, policies...)))
	}
}

// notAdmitted is everybody whom no AccessPolicy on the service allows; nil if there is nobody.
func (r *builder) notAdmitted(mesh *snapshot.MeshPlan, home bool) *security.Rule {
	if len(r.plan.Access) == 0 || r.plan.Mesh.Open {
		return nil
	}
	allowed := r.plan.Callers.Relayed
	if slices.ContainsFunc(allowed, func(rule snapshot.EffectiveRule) bool { return rule.Anyone }) {
		return nil
	}
	var source *security.Source
	if home {
		source = r.membersNamed(allowed)
	} else {
		source = callersNamed(allowed, mesh)
	}
	rule := &security.Rule{}
	if source != nil {
		rule.From = []*security.Rule_From{{Source: source}}
	}
	return rule
}

// membersNamed is everybody but the gateways of members with callers that rules allow; nil for
// everybody.
func (r *builder) membersNamed(allowed []snapshot.EffectiveRule) *security.Source {
	var out []string
	for _, mesh := range r.plan.Federation.To {
		if callersNamed(allowed, mesh) != nil {
			out = append(out, snapshot.GatewayIdentity(r.plan.Federation.Origin.Ref, mesh))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &security.Source{NotPrincipals: withoutScheme(out)}
}

// callersNamed is everybody but the callers of a mesh that rules allow; nil for everybody.
func callersNamed(allowed []snapshot.EffectiveRule, mesh *snapshot.MeshPlan) *security.Source {
	out := &security.Source{}
	for _, rule := range allowed {
		for _, s := range rule.Sources {
			if len(s.Identities) == 0 {
				out.NotNamespaces = append(out.NotNamespaces, s.Namespaces...)
				continue
			}
			s.Identities = within(s)
			out.NotPrincipals = append(out.NotPrincipals, principals(s, mesh)...)
		}
	}
	if len(out.NotPrincipals)+len(out.NotNamespaces) == 0 {
		return nil
	}
	slices.Sort(out.NotPrincipals)
	slices.Sort(out.NotNamespaces)
	out.NotPrincipals, out.NotNamespaces = slices.Compact(out.NotPrincipals), slices.Compact(out.NotNamespaces)
	return out
}

// within are the identities of a source that has namespaces, too, in those: what is not in
// either cannot be written in one condition.
func within(s snapshot.Source) []snapshot.Identity {
	if len(s.Namespaces) == 0 {
		return s.Identities
	}
	var out []snapshot.Identity
	for _, id := range s.Identities {
		switch {
		case id.Namespace == "":
			for _, namespace := range s.Namespaces {
				id.Namespace = namespace
				out = append(out, id)
			}
		case slices.Contains(s.Namespaces, id.Namespace):
			out = append(out, id)
		}
	}
	return out
}

// withoutScheme are SPIFFE IDs as Istio writes principals.
func withoutScheme(identities []string) []string {
	out := make([]string, len(identities))
	for i, id := range identities {
		out[i] = strings.TrimPrefix(id, "spiffe://")
	}
	return out
}
