package policy

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// closed is the answer for the Destinations that let nobody in and have no policies; they share it.
var closed = &snapshot.Callers{}

// callersOf says who may call a Destination whose plan has its mesh, its views and its access; nil
// if it is open by default.
func callersOf(d *snapshot.DestinationPlan, shared *sharing) *snapshot.Callers {
	open := opennessOf(d)
	if open == snapshot.OpenByDefault {
		return nil
	}
	out := &snapshot.Callers{Open: open}
	if open == snapshot.OpenNot {
		for _, v := range d.Views {
			if tls := v.WithoutIdentity(); tls != nil {
				out.Unidentified = append(out.Unidentified, snapshot.UnidentifiedCallers{Mesh: v.Mesh.Ref, TLS: *tls})
			}
		}
		if len(d.Access)+len(out.Unidentified) == 0 {
			return closed
		}
	}
	if shared != nil {
		out.SharedWith, out.Rules = shared.with, shared.rules
	} else if len(d.Access) > 0 {
		out.Rules = make([]snapshot.EffectiveRule, 0, len(d.Access))
		for _, rule := range d.Access {
			out.Rules = append(out.Rules, effectiveRule(rule, d.Destination.Spec.KubeService))
		}
	}
	out.Rules = slices.DeleteFunc(out.Rules, func(r snapshot.EffectiveRule) bool { return slices.Contains(r.PodPorts, snapshot.NoPort) })
	if d.Mesh != nil && d.Mesh.Limited {
		out.Relayed, out.NotRelayed = relayedRules(d.Mesh, out.Rules)
	}
	return out
}

// effectiveRule is what a policy allows on a service by itself.
func effectiveRule(r *snapshot.AccessRule, service *discoveryv1.KubeService) snapshot.EffectiveRule {
	return snapshot.EffectiveRule{
		Policy: r.Origin.Ref, Anyone: r.Anyone, Sources: r.Sources,
		Paths: r.Paths, Methods: r.Methods, PodPorts: snapshot.PodPorts(service, r.Ports),
	}
}

// opennessOf is why a Destination lets all callers in.
func opennessOf(d *snapshot.DestinationPlan) snapshot.Openness {
	mesh, isService := d.Mesh, d.Destination.Spec.KubeService != nil
	switch {
	case mesh != nil && isService && mesh.IsOpenGateway(inventory.ServiceRef(d.Destination)):
		return snapshot.OpenAsGateway
	case mesh != nil && mesh.Open:
		return snapshot.OpenByMesh
	case len(d.Access) == 0 && (mesh == nil || mesh.DenyByDefault == nil):
		return snapshot.OpenByDefault
	}
	return snapshot.OpenNot
}

// relayedRules is what rules allow callers of other members of a Limited mesh: the gateway that they
// come from is all that the service sees of them, so that all that it lets in has the same conditions
// on requests. Dropped are the policies that have others.
func relayedRules(mesh *snapshot.MeshPlan, rules []snapshot.EffectiveRule) (allowed []snapshot.EffectiveRule, dropped []snapshot.Ref) {
	for _, rule := range rules {
		if relayed, some := relayedPart(mesh, rule); some {
			allowed = append(allowed, relayed)
		}
	}
	if len(allowed) == 0 || !slices.ContainsFunc(allowed, func(r snapshot.EffectiveRule) bool { return !sameConditions(&r, &allowed[0]) }) {
		return allowed, nil
	}
	allowed = slices.DeleteFunc(allowed, func(r snapshot.EffectiveRule) bool {
		if restricted := len(r.Paths)+len(r.Methods)+len(r.PodPorts) > 0; !restricted {
			return false
		}
		dropped = append(append(dropped, r.Policy), r.With...)
		return true
	})
	slices.SortFunc(dropped, snapshot.Ref.Compare)
	return allowed, slices.Compact(dropped)
}

// relayedPart is the part of a rule that is about callers of other members; false if there is
// none.
func relayedPart(mesh *snapshot.MeshPlan, rule snapshot.EffectiveRule) (snapshot.EffectiveRule, bool) {
	if rule.Anyone {
		return rule, true
	}
	var sources []snapshot.Source
	for _, s := range rule.Sources {
		all := len(s.Identities)
		s.Identities = slices.DeleteFunc(slices.Clone(s.Identities), func(id snapshot.Identity) bool {
			_, cluster := id.InCluster()
			return id.TrustDomain == mesh.IdentityDomain() || cluster == ""
		})
		if all == 0 || len(s.Identities) > 0 {
			sources = append(sources, s)
		}
	}
	rule.Sources = sources
	return rule, len(sources) > 0
}

func sameConditions(a, b *snapshot.EffectiveRule) bool {
	return slices.Equal(a.Paths, b.Paths) && slices.Equal(a.Methods, b.Methods) && slices.Equal(a.PodPorts, b.PodPorts)
}
