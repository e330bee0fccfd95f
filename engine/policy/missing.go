package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// missingTarget is a target of a trafficShift that the viewer cannot reach.
type missingTarget struct {
	snapshot.MissingTarget
	field string
	// why has at least one error.
	why []snapshot.Issue
}

func shiftOf(p *networkingv1.Policy) any { return p.TrafficShift }

func mirrorOf(p *networkingv1.Policy) any { return p.Mirror }

// acceptedBefore reports whether the last accepted spec has the same value in a field,
// for the same requests. If a target of such a field cannot be reached now, it is the
// target that has changed, and not the policy.
func (c *fieldContext) acceptedBefore(value func(*networkingv1.Policy) any) bool {
	was := c.lastAccepted
	return was != nil && was.Policy != nil &&
		equality.Semantic.DeepEqual(was.SourceSelector, c.spec.SourceSelector) &&
		equality.Semantic.DeepEqual(was.HttpRequestMatchers, c.spec.HttpRequestMatchers) &&
		equality.Semantic.DeepEqual(value(was.Policy), value(c.spec.Policy))
}

// unknownTargets reports the targets of a spec that do not exist, whoever calls, and that
// the last accepted spec has not either. A policy that concerns no caller yet is not
// accepted with them: for the first caller, the targets that do exist would take all
// requests.
func (c *fieldContext) unknownTargets() []snapshot.Issue {
	var issues []snapshot.Issue
	p := c.spec.Policy
	if p.TrafficShift != nil && !c.acceptedBefore(shiftOf) {
		for i := range p.TrafficShift.Destinations {
			d, field := &p.TrafficShift.Destinations[i], shiftField(i)
			switch {
			case d.VirtualDestination != nil:
				if at := virtualRef(d.VirtualDestination); c.env.virtualDestinations[at] == nil {
					issues = append(issues, virtualNotFound(field, at)...)
				}
			case d.StaticDestination != nil:
				if c.env.externals.find(*d.StaticDestination) == nil {
					issues = append(issues, externalNotFound(field, *d.StaticDestination)...)
				}
			case d.KubeService != nil:
				if service := serviceOf(d.KubeService); !c.env.discovered(service) {
					issues = append(issues, serviceNotFound(c.env.inv, field, service)...)
				}
			}
		}
	}
	if m := p.Mirror; m != nil && m.KubeService != nil && !c.env.discovered(*m.KubeService) && !c.acceptedBefore(mirrorOf) {
		issues = append(issues, serviceNotFound(c.env.inv, "policy.mirror", *m.KubeService)...)
	}
	return issues
}

func (env *environment) discovered(service commonv1.ClusterObjectRef) bool {
	_, ok := env.inv.IndexOfService(service)
	return ok
}

// missingIssues say what happens to the requests for missing targets.
func (c *fieldContext) missingIssues(s *shift) []snapshot.Issue {
	seenByOthers := func(m missingTarget) bool { return m.why[0].Code == snapshot.NotFederated }
	var issues []snapshot.Issue
	for _, m := range s.missing {
		if !s.asksFor(m.Weight) {
			issue := missingIssue(m.why[0], "it has no weight, so no requests are redirected")
			issue.Severity = snapshot.Warning
			issues = append(issues, issue)
			continue
		}
		from, to := "", "the other targets"
		if !s.leads() {
			to = "the service itself, because no target with a weight is left"
		}
		switch {
		case seenByOthers(m):
			from = "from there " // why names the mesh
		case !s.leads() && slices.ContainsFunc(s.missing, seenByOthers):
			from = "from mesh " + c.viewer.Ref.Name + " "
		}
		issues = append(issues, missingIssue(m.why[0], "its "+snapshot.Percent(s.share(m.Weight))+" of the requests "+from+"go to "+to))
	}
	return issues
}

// missingIssue is the issue for a target of a field that was accepted before. Why says
// that it cannot be reached.
func missingIssue(why snapshot.Issue, consequence string) snapshot.Issue {
	if why.Code == snapshot.DestinationNotFound || why.Code == snapshot.NoDestination {
		why.Hint = "restore it, or remove it from the policy"
	}
	why.Hint += "; as soon as it can be reached, requests go there again"
	why.Code, why.Message = snapshot.TargetMissing, why.Message+"; "+consequence
	return why
}

// rejectsInForce reports whether issues reject a spec that is in force: all errors that
// reject one do, except hand-written objects. Whoever writes one must not withdraw what
// others rely on.
func rejectsInForce(issues []snapshot.Issue) bool {
	return snapshot.Rejected(slices.DeleteFunc(slices.Clone(issues), func(i snapshot.Issue) bool { return i.Code == snapshot.HandWritten }))
}

// lastGoodIssues are the issues of a policy whose last accepted spec is in force: those
// with the present spec, and what is missing for the one in force. Both may be the same.
func lastGoodIssues(present, inForce []snapshot.Issue, same bool) []snapshot.Issue {
	stays := snapshot.Warnf(snapshot.LastGoodInForce, "fix the policy; until then its last accepted version stays in force",
		"the policy is not accepted, and its last accepted version stays in force")
	if same {
		stays = snapshot.Warnf(snapshot.LastGoodInForce, "delete the hand-written object, or change the policy; until then it stays in force as it was accepted",
			"the policy is no longer accepted, and stays in force as it was accepted")
	}
	issues := append(slices.Clip(present), stays)
	for _, issue := range inForce {
		if issue.Code == snapshot.TargetMissing {
			issue.Field = "" // of another version
			issue.Message = "in the last accepted version, " + issue.Message
			issues = append(issues, issue)
		}
	}
	return issues
}

// missingFrom identifies the targets of a spec that the viewer cannot reach; empty if
// it can reach all.
func (c *fieldContext) missingFrom() string {
	key, p := "", c.spec.Policy
	if p == nil {
		return key
	}
	if p.TrafficShift != nil {
		for _, m := range c.resolveShift().missing {
			key += " " + m.field
		}
	}
	if p.Mirror != nil {
		if _, ok := c.mirrorTarget(); !ok {
			key += " mirror"
		}
	}
	return key
}
