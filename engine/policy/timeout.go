package policy

import (
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var requestTimeout = feature{
	field: "policy.requestTimeout",
	value: func(p *networkingv1.Policy) any { return has(p.RequestTimeout) },
	check: func(s *setting) []snapshot.Issue {
		return checkStep("policy.requestTimeout", s.spec.Policy.RequestTimeout, time.Millisecond)
	},
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.Timeout, s.spec.Policy.RequestTimeout.Duration, origin)
	},
}
