package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var retries = feature{
	field: "policy.retries",
	value: func(p *networkingv1.Policy) any { return has(p.Retries) },
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		claim(&action.Retries, *s.spec.Policy.Retries, origin)
	},
}
