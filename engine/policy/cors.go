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
	check: func(c *fieldContext) []snapshot.Issue {
		const field = "policy.corsPolicy"
		cors := c.spec.Policy.CorsPolicy
		var issues []snapshot.Issue
		for i, origin := range cors.AllowOrigins {
			issues = append(issues, checkMatch(field+".allowOrigins["+strconv.Itoa(i)+"]", origin)...)
		}
		for _, method := range cors.AllowMethods {
			if !slices.Contains(corsMethods, method) {
				issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "use HTTP methods in upper case, or *",
					"%s.allowMethods: proxies do not support method %q", field, method).At(field+".allowMethods"))
			}
		}
		issues = append(issues, checkCORSHeaders(field+".allowHeaders", cors.AllowHeaders)...)
		issues = append(issues, checkCORSHeaders(field+".exposeHeaders", cors.ExposeHeaders)...)
		if cors.MaxAge != nil && cors.MaxAge.Duration == 0 {
			issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "set at least 1s, or remove it", field+".maxAge is 0").At(field+".maxAge"))
		}
		return append(issues, checkStep(field+".maxAge", cors.MaxAge, time.Second)...)
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		setIfUnset(&action.CORS, *c.spec.Policy.CorsPolicy, origin)
	},
}

// corsMethods are the values that Istio accepts in CorsPolicy.allow_methods.
var corsMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "*"}

// checkCORSHeaders checks header names; * means any, and is also a valid name.
func checkCORSHeaders(field string, names []string) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, name := range names {
		issues = append(issues, checkHeaderName(field, name)...)
	}
	return issues
}
