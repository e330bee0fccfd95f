package policy

import (
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var requestTimeout = feature{
	field: "policy.requestTimeout",
	value: func(p *networkingv1.Policy) any { return has(p.RequestTimeout) },
	check: func(c *fieldContext) []snapshot.Issue {
		return checkStep("policy.requestTimeout", c.spec.Policy.RequestTimeout, time.Millisecond)
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		setIfUnset(&action.Timeout, c.spec.Policy.RequestTimeout.Duration, origin)
	},
}
