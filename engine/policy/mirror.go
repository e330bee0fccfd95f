package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mirror: an omitted percentage means all requests, as documented.
var mirror = feature{
	field: "policy.mirror",
	value: func(p *networkingv1.Policy) any { return has(p.Mirror) },
	check: func(s *setting) []snapshot.Issue {
		if s.spec.Policy.Mirror.KubeService == nil {
			return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set policy.mirror.kubeService", "policy.mirror names no service")}
		}
		_, issues := s.resolveMirror()
		return issues
	},
	route: func(s *setting, origin snapshot.Origin, action *snapshot.Action) {
		target, _ := s.resolveMirror()
		claim(&action.Mirror, snapshot.MirrorTarget{
			Destination: target.Destination, Host: target.Host, Port: target.Port,
			Percent: percentOrAll(s.spec.Policy.Mirror.Percentage),
		}, origin)
	},
}

func (s *setting) resolveMirror() (snapshot.Target, []snapshot.Issue) {
	m := s.spec.Policy.Mirror
	return s.resolve("policy.mirror", *m.KubeService, m.Port)
}
