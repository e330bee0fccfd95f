package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// enforcementRecord is what a policy's stored status says about its enforcement.
type enforcementRecord struct {
	// lastGeneration is the generation that was last in force anywhere; 0 if none
	// was.
	lastGeneration int64
	// current is set if the last Plan has the present spec in force.
	current bool
}

// readEnforced reads the policies' statuses. It runs after bindPolicies: bindings are
// in the order of the policies.
func (r *reconciler) readEnforced() {
	for i, p := range r.next.ofTraffic.read {
		b := r.traffic[i]
		b.stale = b.update(p.Status.LastEnforcedGeneration, b.plan) || b.stale
	}
	for i, p := range r.next.ofAccess.read {
		b := r.access[i]
		b.stale = b.update(p.Status.LastEnforcedGeneration, b.plan) || b.stale
	}
}

// update stores what a status says. It reports whether the policy must be planned
// again because of it; a policy whose present spec is in force need not.
func (e *enforcementRecord) update(enforced int64, plan *snapshot.PolicyPlan) bool {
	if e.lastGeneration == enforced {
		return false
	}
	e.lastGeneration = enforced
	return plan != nil && !e.current
}

// enforcement says which version of a policy is in force.
type enforcement uint8

const (
	notEnforced enforcement = iota
	// lastGoodEnforced: the last accepted spec, not the present one.
	lastGoodEnforced
	specEnforced
)

func (r *reconciler) trafficEnforcement(b *trafficBinding) enforcement {
	now := notEnforced
	for _, i := range b.selected {
		accepted := r.states[i].accepted
		at, found := accepted.appliedOf[b.policy]
		switch {
		case !found:
		case !accepted.applied[at].LastGood:
			return specEnforced
		default:
			now = lastGoodEnforced
		}
	}
	return now
}

// accessEnforcement looks for the rules in force: a policy that is rejected because
// of a hand-written object stays in force.
func (r *reconciler) accessEnforcement(b *accessBinding) enforcement {
	now := notEnforced
	for _, i := range b.selected {
		for _, rules := range [][]*snapshot.AccessRule{r.states[i].rules, r.states[i].denials} {
			switch at := slices.IndexFunc(rules, func(rule *snapshot.AccessRule) bool { return rule.Origin.Ref == b.ref }); {
			case at < 0:
			case rules[at].LastGood:
				now = lastGoodEnforced
			default:
				return specEnforced
			}
		}
	}
	return now
}

// record sets the generation that was last in force, and adds an issue if a policy
// that was in force no longer is.
func (e *enforcementRecord) record(p *snapshot.PolicyPlan, now enforcement) *snapshot.PolicyPlan {
	if e.current = now == specEnforced; e.current {
		p.LastEnforced = p.Policy.GetGeneration()
		return p
	}
	p.LastEnforced = e.lastGeneration
	if e.lastGeneration == 0 || now == lastGoodEnforced {
		return p
	}
	p.Issues = append(slices.Clone(p.Issues), snapshot.Warnf(snapshot.NoLongerEnforced, enforcementHint(p, e.lastGeneration),
		"generation %d was in force, and the policy is in force nowhere now: %s", e.lastGeneration, consequence(p.Policy)).On(p.Ref, snapshot.Ref{}))
	return p
}

// consequence says what it means that a policy is in force nowhere.
func consequence(policy metav1.Object) string {
	if _, access := policy.(*networkingv1.AccessPolicy); access {
		return "it neither allows nor denies any caller"
	}
	return "it has no effect on requests"
}

func enforcementHint(p *snapshot.PolicyPlan, enforced int64) string {
	switch {
	case p.Policy.GetGeneration() > enforced:
		return "fix what was changed in its spec since; or delete it if it is no longer needed"
	case len(p.Verdicts) > 0:
		return "fix the issues of each destination; or delete it if it is no longer needed"
	}
	return "check its destinations: `meshctl describe destination` lists the services there are; or delete it if it is no longer needed"
}
