package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/access"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about AccessPolicies that deny. They are in force on pods, by whatever service these are called.

// denyingBeside are the Destinations, the own one among them, on which AccessPolicies deny something and that may select pods of a
// Destination.
func (o *outside) denyingBeside(d *snapshot.DestinationPlan) (out []*snapshot.DestinationPlan) {
	k := d.Destination.Spec.KubeService
	if k == nil || d.Mesh == nil {
		return nil
	}
	for _, other := range o.denying[podNamespace{k.Ref.ClusterName, k.Ref.Namespace}] {
		if other == d || other.MeshRef() == d.MeshRef() && mayShare(k.WorkloadSelectorLabels, other.Destination.Spec.KubeService.WorkloadSelectorLabels) {
			out = append(out, other)
		}
	}
	return out
}

// deniesSome reports whether policies deny calls to pods of a Destination.
func (o *outside) deniesSome(d *snapshot.DestinationPlan) bool {
	return d.Denials != nil || len(o.denyingBeside(d)) > 0 && slices.ContainsFunc(o.podGroups(d, 0, nil), func(g *podGroup) bool { return len(g.denying) > 0 })
}

// denyingAt are those of some Destinations whose policies hold at a pod of one of them.
func denyingAt(among []*snapshot.DestinationPlan, d *snapshot.DestinationPlan, pod map[string]string) (out []*snapshot.DestinationPlan) {
	for _, o := range among {
		if o == d || inventory.MatchLabels(o.Destination.Spec.KubeService.WorkloadSelectorLabels, pod) {
			out = append(out, o)
		}
	}
	return out
}

// beside reports whether there are more Destinations than one itself.
func beside(among []*snapshot.DestinationPlan, d *snapshot.DestinationPlan) bool {
	return slices.ContainsFunc(among, func(o *snapshot.DestinationPlan) bool { return o != d })
}

// denials are the rules by which pods of a group refuse callers of a mesh.
func (g *podGroup) denials(from *snapshot.MeshPlan) (rules []snapshot.EffectiveRule) {
	for _, o := range g.denying {
		rules = append(rules, access.DenialsFor(o, from)...)
	}
	return rules
}

// allowing are the rules that let callers of a mesh in at pods of a group; one without conditions where all are let in.
func (g *podGroup) allowing(d *snapshot.DestinationPlan, from *snapshot.MeshPlan) (rules []snapshot.EffectiveRule) {
	of := g.others
	switch {
	case len(of) > 0:
	case d.Open() != snapshot.OpenNot:
		return anything()
	default:
		of = append([]*snapshot.DestinationPlan{d}, g.also...)
	}
	for _, o := range of {
		rules = append(rules, access.RulesFor(o, from)...)
	}
	return rules
}

// anything is the rule that lets everybody in.
func anything() []snapshot.EffectiveRule { return []snapshot.EffectiveRule{{Anyone: true}} }

// deniedRules are what the policies on a Destination deny.
func deniedRules(d *snapshot.DestinationPlan) (rules []Rule) {
	if d.Denials == nil {
		return nil
	}
	for _, rule := range d.Denials.Policies {
		rules = append(rules, Rule{
			Policy: rule.Origin.Ref, Callers: callersText(rule.Anyone, rule.Sources, false), Paths: rule.Paths, Methods: rule.Methods, Ports: rule.Ports,
		})
	}
	return rules
}

// denialSections say who is denied; none if nobody is.
func (a *Access) denialSections() []Section {
	if len(a.Denied)+len(a.DeniedBeside) == 0 {
		return nil
	}
	s := Section{Title: "Who may not call it, whatever allows it"}
	if len(a.Denied) > 0 {
		s.Header = ruleHeader
	}
	for i := range a.Denied {
		a.Denied[i].addTo(&s)
	}
	if len(a.DeniedBeside) > 0 {
		s.Text = "Its pods are also those of " + services(a.DeniedBeside) + ": what policies deny there is denied here, too."
	}
	if a.Anonymous != "" {
		s.Text = snapshot.Sentences(s.Text, a.Anonymous)
	}
	return []Section{s}
}

// anonymousText says that those who present no identity are not denied; empty if they are, or if all is allowed by identity.
func anonymousText(d *snapshot.DestinationPlan) string {
	if d.Denials == nil || !slices.ContainsFunc(d.Denials.Rules, func(r snapshot.EffectiveRule) bool { return !r.Anyone }) {
		return ""
	}
	text := "Callers that present no identity are denied only by what is for anyone"
	for _, u := range d.Denials.Unidentified {
		text += "; those from mesh " + shortName(u.Mesh) + " present none (" + kindAndName(u.TLS.Origin.Ref) + " sets TLS mode " + string(u.TLS.Value) + ")"
	}
	return text + "."
}

// actionOf is DENY for an AccessPolicy that denies; else empty.
func actionOf(p *snapshot.PolicyPlan) string {
	if policy, ok := p.Policy.(*networkingv1.AccessPolicy); ok && policy.Spec.Denies() {
		return Deny
	}
	return ""
}

// enforcementOf is AUDIT for a policy that is audited; else empty.
func enforcementOf(p *snapshot.PolicyPlan) string {
	if p.Audited {
		return string(networkingv1.EnforcementAudit)
	}
	return ""
}

// deniesMore reports whether something that a workload may ask for is denied now, and was not before.
func deniesMore(workload *discoveryv1.Workload, was, is *snapshot.DestinationPlan, before, after *snapshot.MeshPlan) bool {
	of := func(d *snapshot.DestinationPlan, mesh *snapshot.MeshPlan) (out []snapshot.EffectiveRule) {
		caller := callerOf(workload, mesh, d.WithoutIdentity(mesh) == nil)
		for _, rule := range access.DenialsFor(d, mesh) {
			if access.AllowsCaller(d.Mesh, &rule, caller) {
				rule.Anyone = true
				out = append(out, rule)
			}
		}
		return out
	}
	return asksLess(of(is, after), of(was, before))
}
