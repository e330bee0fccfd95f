package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mirror: an omitted percentage means all requests, as documented.
var mirror = feature{
	field: "policy.mirror",
	value: func(p *networkingv1.Policy) any { return has(p.Mirror) },
	check: func(c *fieldContext) []snapshot.Issue {
		if c.spec.Policy.Mirror.KubeService == nil {
			return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set policy.mirror.kubeService", "policy.mirror names no service").At("policy.mirror")}
		}
		target, issues := c.resolveMirror()
		if snapshot.HasErrors(issues) && c.acceptedBefore(mirrorOf) {
			return []snapshot.Issue{missingIssue(issues[0], "no requests are copied")}
		}
		return append(issues, c.rootIssues("policy.mirror", target)...)
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		if target, ok := c.mirrorTarget(); ok {
			setIfUnset(&action.Mirror, snapshot.MirrorTarget{
				Destination: target.Destination, Host: target.Host, Port: target.Port, Place: target.Place,
				Percent: percentOrAll(c.spec.Policy.Mirror.Percentage),
			}, origin)
		}
	},
}

// mirrorTarget is the target of the copies; false if the viewer cannot reach it.
func (c *fieldContext) mirrorTarget() (snapshot.Target, bool) {
	if c.spec.Policy.Mirror.KubeService == nil {
		return snapshot.Target{}, false
	}
	target, issues := c.resolveMirror()
	return target, !snapshot.HasErrors(issues)
}

func (c *fieldContext) resolveMirror() (snapshot.Target, []snapshot.Issue) {
	m := c.spec.Policy.Mirror
	return c.resolve("policy.mirror", *m.KubeService, m.Port)
}
