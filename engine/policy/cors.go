package policy

import (
	"strconv"
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var corsPolicy = feature{
	field: "policy.corsPolicy",
	value: func(p *networkingv1.Policy) any { return has(p.CorsPolicy) },
	check: func(s *setting) []snapshot.Issue {
		cors := s.spec.Policy.CorsPolicy
		var issues []snapshot.Issue
		for i, origin := range cors.AllowOrigins {
			issues = append(issues, checkMatch("policy.corsPolicy.allowOrigins["+strconv.Itoa(i)+"]", origin)...)
		}
		if cors.MaxAge != nil && cors.MaxAge.Duration == 0 {
			issues = append(issues, failure(snapshot.FieldInvalid, "set at least 1s, or remove it", "policy.corsPolicy.maxAge is 0"))
		}
		return append(issues, checkStep("policy.corsPolicy.maxAge", cors.MaxAge, time.Second)...)
	},
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.CORS, *s.spec.Policy.CorsPolicy, origin)
	},
}
