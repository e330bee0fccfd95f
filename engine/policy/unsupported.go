package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var csrf = unsupported("policy.csrf", func(p *networkingv1.Policy) any { return has(p.Csrf) })

var rateLimit = unsupported("policy.rateLimit", func(p *networkingv1.Policy) any { return has(p.RateLimit) })

// unsupported is a field that no mesh is given: a policy that has it is refused
// rather than weaker than it reads.
func unsupported(field string, value func(*networkingv1.Policy) any) feature {
	return feature{field: field, value: value, check: func(*setting) []snapshot.Issue {
		return []snapshot.Issue{failure(snapshot.FieldUnsupported, "remove it from the policy", "%s is not available yet", field)}
	}}
}
