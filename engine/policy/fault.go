package policy

import (
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// A fault is two fields, so that one policy can delay and another abort the same
// requests. An omitted percentage means all requests, as documented.
var (
	faultDelay = feature{
		field: "policy.faultInjection.fixedDelay",
		value: func(p *networkingv1.Policy) any {
			if f := p.FaultInjection; f != nil && f.FixedDelay != nil {
				return snapshot.Delay{Duration: f.FixedDelay.Duration, Percent: percentOrAll(f.Percentage)}
			}
			return nil
		},
		check: func(c *fieldContext) []snapshot.Issue {
			return checkDuration("policy.faultInjection.fixedDelay", c.spec.Policy.FaultInjection.FixedDelay, time.Millisecond)
		},
		route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
			f := c.spec.Policy.FaultInjection
			setIfUnset(&action.Delay, snapshot.Delay{Duration: f.FixedDelay.Duration, Percent: percentOrAll(f.Percentage)}, origin)
		},
	}
	faultAbort = feature{
		field: "policy.faultInjection.abort",
		value: func(p *networkingv1.Policy) any {
			f := p.FaultInjection
			if f == nil || (f.Abort == nil && f.FixedDelay != nil) {
				return nil
			}
			return abortOf(f)
		},
		check: func(c *fieldContext) []snapshot.Issue {
			if c.spec.Policy.FaultInjection.Abort != nil {
				return nil
			}
			return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set fixedDelay or abort.httpStatus",
				"policy.faultInjection has neither fixedDelay nor abort").At("policy.faultInjection")}
		},
		route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
			setIfUnset(&action.Abort, abortOf(c.spec.Policy.FaultInjection), origin)
		},
	}
)

func abortOf(f *networkingv1.FaultInjection) snapshot.Abort {
	out := snapshot.Abort{Percent: percentOrAll(f.Percentage)}
	if f.Abort != nil {
		out.Status = f.Abort.HttpStatus
	}
	return out
}
