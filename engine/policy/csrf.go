package policy

import (
	"strconv"
	"strings"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var csrf = feature{
	field: "policy.csrf",
	value: func(p *networkingv1.Policy) any { return has(p.Csrf) },
	check: func(c *fieldContext) []snapshot.Issue {
		const field = "policy.csrf"
		p := c.spec.Policy.Csrf
		var issues []snapshot.Issue
		if !p.FilterEnabled && !p.ShadowEnabled {
			issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "set filterEnabled or shadowEnabled, or remove it",
				"%s has no effect: neither filterEnabled nor shadowEnabled is set", field).At(field))
		}
		for i, origin := range p.AdditionalOrigins {
			at := field + ".additionalOrigins[" + strconv.Itoa(i) + "]"
			issues = append(issues, checkMatch(at, origin)...)
			// Envoy compares the origin's host and port (CsrfPolicy.additional_origins).
			if strings.Contains(origin.Exact+origin.Prefix+origin.Suffix, "://") {
				issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "write the host, and the port if there is one, without https://",
					"%s never matches: proxies compare only the host and port of the origin", at).At(at))
			}
		}
		return issues
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		p := c.spec.Policy.Csrf
		if !p.FilterEnabled && !p.ShadowEnabled {
			return
		}
		setIfUnset(&action.CSRF, snapshot.CSRF{
			Shadow: !p.FilterEnabled, Percent: percentOrAll(p.Percentage), Origins: p.AdditionalOrigins,
		}, origin)
	},
}
