package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ceasing is what a policy's own earlier status says of it.
type ceasing struct {
	// enforced is the generation that was last in force somewhere; 0 if none was.
	enforced int64
	// held: the last plan found its present spec in force.
	held bool
}

// markCeasing reads the policies' statuses. It must follow bind: bindings stand
// in the order of the policies.
func (r *round) markCeasing(m *snapshot.Management) {
	for i, p := range m.TrafficPolicies {
		b := r.traffic[i]
		if b.read(p.Status.LastEnforcedGeneration, b.plan) {
			r.policies[b.ref] = true
		}
	}
	for i, p := range m.AccessPolicies {
		b := r.access[i]
		if b.read(p.Status.LastEnforcedGeneration, b.plan) {
			r.policies[b.ref] = true
		}
	}
}

// read takes over what a status says and reports whether the plan made before
// does not know it. Of a policy in force it need not know.
func (c *ceasing) read(enforced int64, plan *snapshot.PolicyPlan) bool {
	if c.enforced == enforced {
		return false
	}
	c.enforced = enforced
	return plan != nil && !c.held
}

// holds says how much of a policy is in force.
type holds uint8

const (
	nothing holds = iota
	// anEarlierSpec: the last accepted one.
	anEarlierSpec
	thisSpec
)

func (r *round) trafficHolds(b *trafficBinding, p *snapshot.PolicyPlan) holds {
	if slices.ContainsFunc(p.Verdicts, func(v snapshot.Verdict) bool { return v.Accepted }) {
		return thisSpec
	}
	for _, i := range b.selected {
		if slices.ContainsFunc(r.cells[i].accepted.applied, func(a snapshot.AppliedTraffic) bool { return a.Policy == b.policy }) {
			return anEarlierSpec
		}
	}
	return nothing
}

// accessHolds looks for the rules: one that something written by hand intersects
// with is in force although it is refused.
func (r *round) accessHolds(b *accessBinding) holds {
	for _, i := range b.selected {
		if slices.ContainsFunc(r.cells[i].rules, func(rule *snapshot.AccessRule) bool { return rule.Origin.Ref == b.ref }) {
			return thisSpec
		}
	}
	return nothing
}

// note puts down which generation was last in force, and the issue if that is
// all over.
func (c *ceasing) note(p *snapshot.PolicyPlan, now holds) *snapshot.PolicyPlan {
	if c.held = now == thisSpec; c.held {
		p.LastEnforced = p.Policy.GetGeneration()
		return p
	}
	p.LastEnforced = c.enforced
	if c.enforced == 0 || now == anEarlierSpec {
		return p
	}
	p.Issues = append(slices.Clone(p.Issues), snapshot.Warnf(snapshot.NoLongerEnforced, whatNext(p, c.enforced),
		"it was in force (generation %d) and is in force nowhere now: %s", c.enforced, withoutIt(p.Policy)).On(p.Ref, snapshot.Ref{}))
	return p
}

// withoutIt says what a policy that is in force nowhere leaves behind.
func withoutIt(policy metav1.Object) string {
	if _, access := policy.(*networkingv1.AccessPolicy); access {
		return "it lets nobody in, and keeps nobody out"
	}
	return "requests go as if it did not exist"
}

func whatNext(p *snapshot.PolicyPlan, enforced int64) string {
	switch {
	case p.Policy.GetGeneration() > enforced:
		return "see what was changed in its spec since, and mend that; or delete it if it has done its work"
	case len(p.Verdicts) > 0:
		return "mend what is said of each destination; or delete it if it has done its work"
	}
	return "see what became of the services it was about: `meshctl describe destination` lists those there are; or delete it if it has done its work"
}
