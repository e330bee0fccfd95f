package policy

import (
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var retries = feature{
	field: "policy.retries",
	value: func(p *networkingv1.Policy) any { return has(p.Retries) },
	check: func(c *fieldContext) []snapshot.Issue {
		r := c.spec.Policy.Retries
		var issues []snapshot.Issue
		if r.PerTryTimeout != nil {
			issues = checkDuration("policy.retries.perTryTimeout", r.PerTryTimeout, time.Millisecond)
		}
		if r.Attempts == 0 && r.PerTryTimeout != nil {
			issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "set policy.retries.attempts, or remove perTryTimeout",
				"policy.retries has a perTryTimeout, but 0 attempts disable retries").At("policy.retries"))
		}
		return issues
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		setIfUnset(&action.Retries, *c.spec.Policy.Retries, origin)
	},
}
