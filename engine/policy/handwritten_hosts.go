package policy

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// hostIssues reports the hand-written objects for the host of a VirtualDestination in
// a mesh. A ServiceEntry with a wildcard is no conflict: the more specific host wins.
func (env *environment) hostIssues(host string, mesh *snapshot.MeshPlan) []snapshot.Issue {
	hand := env.handWritten[mesh.Cluster]
	if hand == nil {
		return nil
	}
	at := hostPlace{host: host, mesh: mesh, home: mesh.Namespace}
	var issues []snapshot.Issue
	for _, o := range hand.destinationRules.matching(host) {
		switch to, hidden := o.ruleFor(at); {
		case to.none():
		case hidden:
			issues = append(issues, env.hostIssue(at, o, to, "no longer sets how "+host+" is connected to: the generated DestinationRule takes precedence over one in the root namespace",
				"delete it, or change its host so that it does not include this one"))
		default:
			issues = append(issues, env.hostIssue(at, o, to, "also sets how "+host+" is connected to, and the mesh decides which of the two applies: failing endpoints may stay in use, so that nothing takes over",
				"delete it, or change its host so that it does not include this one"))
		}
	}
	for _, o := range hand.serviceEntries.named(host) {
		if to := o.seenBy(mesh); !to.none() {
			issues = append(issues, env.hostIssue(at, o, to, "also defines the endpoints of "+host+undecided, "delete it, or choose another hostname"))
		}
	}
	return issues
}

// serviceEntryIssues reports the hand-written ServiceEntries for external services to
// which a policy sends requests.
func (c *fieldContext) serviceEntryIssues(hand *handWritten) []snapshot.Issue {
	shift := c.spec.Policy.TrafficShift
	if shift == nil || hand.serviceEntries.empty() {
		return nil
	}
	var issues []snapshot.Issue
	for i := range shift.Destinations {
		to := shift.Destinations[i].StaticDestination
		if to == nil {
			continue
		}
		if d := c.env.external(*to); d != nil {
			for _, host := range d.Spec.ExternalService.Hosts {
				at := hostPlace{host: host, mesh: c.viewer, home: c.viewer.Namespace}
				for _, o := range hand.serviceEntries.named(host) {
					if to := o.seenBy(c.viewer).among(c.sourceNamespaces()); !to.none() {
						issues = append(issues, c.env.hostIssue(at, o, to, "also defines where "+host+" is"+undecided,
							"delete it: Destination "+d.Name+"."+d.Namespace+" defines the same"))
					}
				}
			}
		}
	}
	return issues
}

// hostIssue reports an object for the same host as a generated one.
func (env *environment) hostIssue(at hostPlace, o handWrittenObject, to callerNamespaces, what, hint string) snapshot.Issue {
	if !to.all {
		what += " (" + strings.TrimPrefix(to.phrase(), ", ") + ")"
	}
	return env.handWrittenIssue(o.ref, at.decides(o.ref.Namespace), what, hint)
}

// named lists the objects that name a host without a wildcard, ascending.
func (x *hostIndex) named(host string) []handWrittenObject {
	return sortedObjects(slices.Clone(x.exact[host]))
}
