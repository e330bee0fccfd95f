package access

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// DenialsFor are the rules by which a Destination refuses the callers of a mesh, whatever lets them in. Of callers of other members,
// the pods of a Limited mesh see a gateway only: what is for everybody holds for them, and their own gateway knows the others.
func DenialsFor(d *snapshot.DestinationPlan, from *snapshot.MeshPlan) []snapshot.EffectiveRule {
	switch {
	case d.Denials == nil:
		return nil
	case d.Mesh == nil || from.Ref == d.Mesh.Ref || !d.Mesh.Limited:
		return d.Denials.Rules
	}
	out := slices.DeleteFunc(slices.Clone(d.Denials.Rules), func(rule snapshot.EffectiveRule) bool { return !rule.Anyone })
	return append(out, d.Denials.Relayed...)
}

// Deny adds to a decision what is denied, whatever lets the call in. Allowing are the rules that let calls in, one without conditions
// where all are. Of a call that stands for all requests of its callers, all that any of them allows must be denied.
func (d Decision) Deny(mesh *snapshot.MeshPlan, denials, allowing []snapshot.EffectiveRule, call *snapshot.Call) Decision {
	var denied []snapshot.EffectiveRule
	for i := range denials {
		if deniesCaller(mesh, &denials[i], call) {
			denied = append(denied, denials[i])
		}
	}
	if call.AnyRequest {
		denied = denyingAll(mesh, denied, allowing, call)
	} else {
		denied = slices.DeleteFunc(denied, func(rule snapshot.EffectiveRule) bool { return !deniesRequest(&rule, call) })
	}
	if len(denied) == 0 {
		return d
	}
	for i := range denied {
		d.Denied = append(d.Denied, denied[i].Policy)
	}
	slices.SortFunc(d.Denied, snapshot.Ref.Compare)
	d.Denied, d.Denier = slices.Compact(d.Denied), &denied[0]
	return d
}

// deniesCaller reports whether a rule denies a caller something on the port of a call.
func deniesCaller(mesh *snapshot.MeshPlan, rule *snapshot.EffectiveRule, call *snapshot.Call) bool {
	return AllowsCaller(mesh, rule, call.Caller) && (len(rule.PodPorts) == 0 || slices.Contains(rule.PodPorts, call.PodPort))
}

// deniesRequest reports whether a rule denies what a call asks for. Where proxies see connections, conditions on requests are left out,
// which denies more (Istio, authz/model, rule.checkError).
func deniesRequest(rule *snapshot.EffectiveRule, call *snapshot.Call) bool {
	return !call.HTTP || (len(rule.Methods) == 0 || matchesAny(rule.Methods, call.Method)) && (len(rule.Paths) == 0 || matchesAny(rule.Paths, call.Path))
}

// denyingAll are the rules that deny all that other rules let callers ask for; none if something is left.
func denyingAll(mesh *snapshot.MeshPlan, denials, allowing []snapshot.EffectiveRule, call *snapshot.Call) (out []snapshot.EffectiveRule) {
	x := NewIntersection(mesh)
	for i := range allowing {
		asked := allowing[i]
		if len(obstaclesOf(mesh, &asked, call)) > 0 {
			continue
		}
		asked = requestsOf(asked)
		by := slices.IndexFunc(denials, func(rule snapshot.EffectiveRule) bool {
			all := requestsOf(rule)
			return !call.HTTP || x.Contains(&all, &asked)
		})
		if by < 0 {
			return nil
		}
		out = append(out, denials[by])
	}
	return out
}

// requestsOf is a rule as if it were for anyone, on any port. Every path begins with a slash.
func requestsOf(rule snapshot.EffectiveRule) snapshot.EffectiveRule {
	out := snapshot.EffectiveRule{Policy: rule.Policy, Anyone: true, Methods: rule.Methods, Paths: rule.Paths}
	if slices.Contains(out.Methods, "*") {
		out.Methods = nil
	}
	if slices.Contains(out.Paths, "*") || slices.Contains(out.Paths, "/*") {
		out.Paths = nil
	}
	return out
}
