package policy

import (
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// rateLimit is counted by each caller's proxy, so every client address has its own
// limit, which is what anonymousLimits means. The other limits need a rate limit
// server or authentication; renderers declare that they have none.
var rateLimit = feature{
	field: "policy.rateLimit",
	value: func(p *networkingv1.Policy) any { return has(p.RateLimit) },
	check: func(c *fieldContext) []snapshot.Issue {
		const field = "policy.rateLimit"
		issues := checkRateLimit(field, c.spec.Policy.RateLimit)
		if n := c.buckets(); n > 1 && c.spec.Policy.RateLimit.Basic != nil {
			issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "divide the number among them, or use fewer matchers",
				"%s.basic.anonymousLimits is counted separately for each of %d combinations of callers, matchers and ports", field, n).At(field+".basic.anonymousLimits"))
		}
		return issues
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		if c.spec.Policy.RateLimit.Basic == nil || c.spec.Policy.RateLimit.Basic.AnonymousLimits == nil {
			return
		}
		limit := c.spec.Policy.RateLimit.Basic.AnonymousLimits
		setIfUnset(&action.RateLimit, snapshot.RateLimit{Requests: limit.RequestsPerUnit, Per: rateUnits[limit.Unit]}, origin)
	},
}

// rateUnits is read-only.
var rateUnits = map[networkingv1.RateLimitUnit]time.Duration{
	networkingv1.RateLimitUnitSecond: time.Second,
	networkingv1.RateLimitUnitMinute: time.Minute,
	networkingv1.RateLimitUnitHour:   time.Hour,
	networkingv1.RateLimitUnitDay:    24 * time.Hour,
}

// buckets is the maximum number of counters in each calling pod: one for each route.
func (c *fieldContext) buckets() int {
	ports := 0
	service := c.env.inv.Destinations[c.index].Spec.KubeService
	for i := range service.Ports {
		if c.env.dialect(c.index).IsHTTP(&service.Ports[i]) {
			ports++
		}
	}
	return ports * len(matches(c.spec, c.viewer.Cluster))
}

func checkRateLimit(field string, p *networkingv1.RouteRateLimit) []snapshot.Issue {
	if p.Advanced != nil || p.ConfigRefs != nil {
		return nil // the renderers declare that no mesh supports it
	}
	if p.Basic == nil || (p.Basic.AnonymousLimits == nil && p.Basic.AuthorizedLimits == nil) {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set basic.anonymousLimits", "%s names no limit", field).At(field)}
	}
	limit := p.Basic.AnonymousLimits
	if limit == nil {
		return nil
	}
	field += ".basic.anonymousLimits"
	var issues []snapshot.Issue
	if rateUnits[limit.Unit] == 0 {
		issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "set SECOND, MINUTE, HOUR or DAY", "%s.unit is not set", field).At(field+".unit"))
	}
	if limit.RequestsPerUnit == 0 {
		issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "set a number; to reject every request use faultInjection.abort",
			"%s.requestsPerUnit is 0, which proxies do not support", field).At(field+".requestsPerUnit"))
	}
	return issues
}
