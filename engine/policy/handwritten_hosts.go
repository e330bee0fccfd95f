package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// hostConflict is a hand-written object for the same host as generated ones, and what comes of it.
type hostConflict struct {
	object     handWrittenObject
	what, hint string
}

// hostConflicts are those of a host that is not one of the mesh's own services. A ServiceEntry with a wildcard is none: the more
// specific host wins.
func (env *environment) hostConflicts(at hostPlace) []hostConflict {
	hand := env.handWritten[at.mesh.Cluster]
	if hand == nil {
		return nil
	}
	var out []hostConflict
	for _, o := range hand.virtualServices.matching(at.host) {
		if to := o.seenBy(at.mesh); !to.none() {
			out = append(out, hostConflict{o, "also routes requests for " + at.host + to.phrase() + undecided, "delete it, or change its hosts so that they do not include this one"})
		}
	}
	for _, o := range hand.destinationRules.matching(at.host) {
		const hint = "delete it, or change its host so that it does not include this one"
		switch to, hidden := o.ruleFor(at); {
		case to.none():
		case hidden:
			out = append(out, hostConflict{o, "no longer sets how " + at.host + " is connected to" + to.phrase() + ": the generated DestinationRule takes precedence over one in the root namespace", hint})
		default:
			out = append(out, hostConflict{o, "also sets how " + at.host + " is connected to" + to.phrase() + undecided + ": failing endpoints may stay in use, so that nothing takes over", hint})
		}
	}
	for _, o := range hand.serviceEntries.named(at.host) {
		if to := o.seenBy(at.mesh); !to.none() {
			out = append(out, hostConflict{o, "also defines the endpoints of " + at.host + to.phrase() + older, "delete it, or choose another hostname"})
		}
	}
	return out
}

// hostIssues reports the hand-written objects for the host of a VirtualDestination in a mesh.
func (env *environment) hostIssues(host string, mesh *snapshot.MeshPlan) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, c := range env.hostConflicts(hostPlace{host: host, mesh: mesh, home: mesh.Namespace}) {
		issues = append(issues, handWrittenWarning(c.object.ref, c.what, c.hint))
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
						issues = append(issues, c.env.handWrittenIssue(o.ref, at.decides(o.ref.Namespace), "also defines where "+host+" is"+to.phrase()+older,
							"delete it: Destination "+d.Name+"."+d.Namespace+" defines the same"))
					}
				}
			}
		}
	}
	return issues
}

// named lists the objects that name a host without a wildcard, ascending.
func (x *hostIndex) named(host string) []handWrittenObject {
	return sortedObjects(slices.Clone(x.exact[host]))
}
