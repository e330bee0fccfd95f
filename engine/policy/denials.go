package policy

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about AccessPolicies with action DENY: which of them are in force, and what follows from them. They win over all that
// allows, close nothing else, and are never written weaker than they are meant: one that a mesh cannot express is rejected, and what was
// in force of it stays.

// rulesOn lists the AccessPolicies in force on a Destination: those that deny, or those that allow.
func rulesOn(r *reconciler, i int, policies []*accessBinding, denies bool) []*snapshot.AccessRule {
	rules := make([]*snapshot.AccessRule, 0, len(policies))
	for _, b := range policies {
		if rule := inForce(r, b, i); rule != nil && rule.Denies == denies {
			rules = append(rules, rule)
		}
	}
	return rules
}

// denialsOn lists the policies that deny on a Destination; none where nothing could be enforced.
func denialsOn(r *reconciler, i int, policies []*accessBinding) []*snapshot.AccessRule {
	d := r.env.inv.Destinations[i]
	if k := d.Spec.KubeService; len(policies) == 0 || k == nil || len(k.WorkloadSelectorLabels) == 0 {
		return nil
	}
	return keptRules(r, i, rulesOn(r, i, policies, true))
}

// inForce is what of a policy is in force on a Destination: its rule or, if that denies what the mesh cannot deny, the one that was last
// accepted. Nil if there is none.
func inForce(r *reconciler, b *accessBinding, i int) *snapshot.AccessRule {
	if overruledBy(r, b, i) != nil {
		return nil
	}
	if dialect := r.env.dialect(i); dialect != nil && snapshot.HasErrors(b.unsupportedFields(dialect)) {
		return nil
	}
	if !b.rule.Denies || len(inexpressible(r.env, b.rule, i)) == 0 {
		return b.rule
	}
	stored := find(r.next.stored, r.env.inv.Destinations[i])
	if stored == nil {
		return nil
	}
	at := slices.IndexFunc(stored.Status.AppliedAccessPolicies, func(a discoveryv1.AppliedAccessPolicy) bool {
		return isApplied(&a, b.ref)
	})
	if at < 0 {
		return nil
	}
	return b.lastGoodRule(r.env, &stored.Status.AppliedAccessPolicies[at])
}

// isApplied reports whether a status says of a policy that it is in force.
func isApplied(a *discoveryv1.AppliedAccessPolicy, policy snapshot.Ref) bool {
	return a.Ref == commonv1.ObjectRef{Name: policy.Name, Namespace: policy.Namespace} && a.ClusterName == policy.Cluster
}

// lastGoodRule is the rule of an accepted version of a policy.
func (b *accessBinding) lastGoodRule(env *environment, applied *discoveryv1.AppliedAccessPolicy) *snapshot.AccessRule {
	for _, known := range b.lastGood {
		if p, ok := known.Policy.(*networkingv1.AccessPolicy); ok && p.Generation == applied.ObservedGeneration && reflect.DeepEqual(p.Spec, applied.Spec) {
			return known
		}
	}
	p := b.policy.DeepCopy()
	p.Generation, p.Spec = applied.ObservedGeneration, *applied.Spec.DeepCopy()
	rule, _ := readSources(p, env.inv, env.topology)
	rule.LastGood = true
	if at := slices.IndexFunc(b.wasGood, func(was *snapshot.AccessRule) bool { return reflect.DeepEqual(was, rule) }); at >= 0 {
		rule = b.wasGood[at]
	}
	b.lastGood = append(b.lastGood, rule)
	return rule
}

// needsStored reports whether what is in force on a Destination may follow from what was before.
func needsStored(d *discoveryv1.Destination, a *attachments) bool {
	return len(a.traffic) > 0 || snapshot.AllAmbient(d.Spec.KubeService) || // see keptRules
		slices.ContainsFunc(a.access, func(b *accessBinding) bool { return b.rule.Denies })
}

// denialsOf is what follows from the policies that deny on a Destination whose plan has its mesh and its views; nil if there are none.
func denialsOf(d *snapshot.DestinationPlan, policies []*snapshot.AccessRule) *snapshot.Denials {
	service := d.Destination.Spec.KubeService
	if len(policies) == 0 || service == nil {
		return nil
	}
	out := &snapshot.Denials{Policies: policies}
	byIdentity := false
	for _, p := range policies {
		if !p.Anyone && len(p.Sources) == 0 {
			continue // it matches nobody
		}
		rule := snapshot.EffectiveRule{
			Policy: p.Origin.Ref, Anyone: p.Anyone, Sources: p.Sources,
			Paths: p.Paths, Methods: p.Methods, PodPorts: snapshot.DeniedPorts(service, p.Ports),
		}
		out.Rules, byIdentity = append(out.Rules, rule), byIdentity || !rule.Anyone
		if d.Mesh == nil || !d.Mesh.Limited || rule.Anyone || hasConditions(p) {
			continue
		}
		if relayed, some := relayedPart(d.Mesh, rule); some {
			out.Relayed = append(out.Relayed, relayed)
		}
	}
	for _, v := range d.Views {
		if tls := v.WithoutIdentity(); tls != nil && byIdentity {
			out.Unidentified = append(out.Unidentified, snapshot.UnidentifiedCallers{Mesh: v.Mesh.Ref, TLS: *tls})
		}
	}
	return out
}

// hasConditions reports whether a rule is about some requests only.
func hasConditions(rule *snapshot.AccessRule) bool {
	return len(rule.Paths)+len(rule.Methods)+len(rule.Ports) > 0
}

// inexpressible says what of a rule that denies the mesh of a Destination cannot deny, so that the rule would be weaker than it is
// written.
func inexpressible(env *environment, rule *snapshot.AccessRule, i int) (issues []snapshot.Issue) {
	d := env.inv.Destinations[i]
	mesh := env.topology.MeshOf(d)
	if mesh == nil || !mesh.Dialect.SPIFFE || rule.Anyone {
		return nil
	}
	if id, found := unnamed(env, rule, mesh); found {
		issues = append(issues, snapshot.Errorf(snapshot.FieldUnsupported,
			"give the mesh of cluster "+id.Cluster+" a trust domain of its own in its meshConfig; or deny everybody",
			"callers in cluster %s cannot be denied: mesh %s reads their trust domain %s as its own, which is %s",
			id.Cluster, mesh.Ref.Name, id.TrustDomain, mesh.TrustDomain).At("sourceSelector"))
	}
	f := env.topology.Federation(i)
	if f == nil || !f.Limited || len(f.To) == 0 || !hasConditions(rule) {
		return issues
	}
	if _, some := relayedPart(mesh, snapshot.EffectiveRule{Sources: rule.Sources}); some {
		issues = append(issues, snapshot.Errorf(snapshot.FieldUnsupported,
			"deny them all requests, in a policy without allowedPaths, allowedMethods and allowedPorts; or name callers of the service's own cluster only; or deny these requests to everybody",
			"callers of other members cannot be denied single requests of service %s: with limited trust, the gateway that knows them reads no requests, and the service sees only a gateway",
			inventory.ServiceName(d.Spec.KubeService.Ref)).At("sourceSelector"))
	}
	return issues
}

// unnamed is an identity of a rule that can connect to services of a mesh, and that its configuration cannot name.
func unnamed(env *environment, rule *snapshot.AccessRule, mesh *snapshot.MeshPlan) (snapshot.Identity, bool) {
	for i := range rule.Sources {
		for _, id := range rule.Sources[i].Identities {
			if _, cluster := id.InCluster(); cluster != "" || id.TrustDomain == snapshot.NoTrustDomain {
				continue // gateways know it, or it has no certificate; see identityIssues
			}
			if _, ok := mesh.Names(id); ok || !mesh.Accepts(id.TrustDomain) {
				continue
			}
			if slices.ContainsFunc(env.topology.Meshes, func(m *snapshot.MeshPlan) bool {
				return m.Cluster == id.Cluster && m.TrustDomain == id.TrustDomain && (m == mesh || mesh.VirtualMesh != nil && m.VirtualMesh == mesh.VirtualMesh)
			}) {
				return id, true
			}
		}
	}
	return snapshot.Identity{}, false
}
