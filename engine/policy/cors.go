package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var corsPolicy = feature{
	field: "policy.corsPolicy",
	value: func(p *networkingv1.Policy) any { return has(p.CorsPolicy) },
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.CORS, *s.spec.Policy.CorsPolicy, origin)
	},
}
