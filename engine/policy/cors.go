package policy

import (
	"slices"
	"strconv"
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var corsPolicy = feature{
	field: "policy.corsPolicy",
	value: func(p *networkingv1.Policy) any { return has(p.CorsPolicy) },
	check: func(s *setting) []snapshot.Issue {
		const field = "policy.corsPolicy"
		cors := s.spec.Policy.CorsPolicy
		var issues []snapshot.Issue
		for i, origin := range cors.AllowOrigins {
			issues = append(issues, checkMatch(field+".allowOrigins["+strconv.Itoa(i)+"]", origin)...)
		}
		for _, method := range cors.AllowMethods {
			if !slices.Contains(corsMethods, method) {
				issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "use the methods of HTTP in upper case, or *",
					"%s.allowMethods: %q is no method that proxies know", field, method))
			}
		}
		issues = append(issues, checkCORSHeaders(field+".allowHeaders", cors.AllowHeaders)...)
		issues = append(issues, checkCORSHeaders(field+".exposeHeaders", cors.ExposeHeaders)...)
		if cors.MaxAge != nil && cors.MaxAge.Duration == 0 {
			issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "set at least 1s, or remove it", field+".maxAge is 0"))
		}
		return append(issues, checkStep(field+".maxAge", cors.MaxAge, time.Second)...)
	},
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.CORS, *s.spec.Policy.CorsPolicy, origin)
	},
}

// corsMethods are those that Istio lets stand in CorsPolicy.allow_methods.
var corsMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "*"}

// checkCORSHeaders: * stands for any here, and is a header's name besides.
func checkCORSHeaders(field string, names []string) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, name := range names {
		issues = append(issues, checkHeaderName(field, name)...)
	}
	return issues
}
