package policy

import (
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// faultInjection: an omitted percentage means all requests, as documented.
var faultInjection = feature{
	field: "policy.faultInjection",
	value: func(p *networkingv1.Policy) any { return has(p.FaultInjection) },
	check: func(s *setting) []snapshot.Issue {
		if f := s.spec.Policy.FaultInjection; f.FixedDelay == nil && f.Abort == nil {
			return []snapshot.Issue{failure(snapshot.FieldInvalid, "set fixedDelay or abort.httpStatus",
				"policy.faultInjection says neither to delay nor to abort")}
		}
		return checkStep("policy.faultInjection.fixedDelay", s.spec.Policy.FaultInjection.FixedDelay, time.Millisecond)
	},
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		fault := *s.spec.Policy.FaultInjection
		percent := percentOrAll(fault.Percentage)
		fault.Percentage = &percent
		claim(&action.Fault, fault, origin)
	},
}
