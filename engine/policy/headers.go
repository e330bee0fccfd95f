package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var headerManipulation = feature{
	field: "policy.headerManipulation",
	value: func(p *networkingv1.Policy) any { return has(p.HeaderManipulation) },
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.Headers, *s.spec.Policy.HeaderManipulation, origin)
	},
}
