package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// hostIssues reports the hand-written objects for the host of a VirtualDestination in
// a mesh. A ServiceEntry with a wildcard is no conflict: the more specific host wins.
func (env *environment) hostIssues(host string, mesh *snapshot.MeshPlan) []snapshot.Issue {
	hand := env.handWritten[mesh.Cluster]
	if hand == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, o := range hand.destinationRules.matching(host) {
		issues = append(issues, env.hostIssue(o, "also sets how "+host+" is connected to, and the mesh decides which of the two applies: failing endpoints may stay in use, so that nothing takes over",
			"delete it, or change its host so that it does not include this one"))
	}
	for _, o := range hand.serviceEntries.named(host) {
		issues = append(issues, env.hostIssue(o, "also defines the endpoints of "+host+", and the mesh decides which of the two applies",
			"delete it, or choose another hostname"))
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
				for _, o := range hand.serviceEntries.named(host) {
					issues = append(issues, c.env.hostIssue(o, "also defines where "+host+" is, and the mesh decides which of the two applies",
						"delete it: Destination "+d.Name+"."+d.Namespace+" defines the same"))
				}
			}
		}
	}
	return issues
}

// hostIssue reports an object for the same host as a generated one.
func (env *environment) hostIssue(o handWrittenObject, what, hint string) snapshot.Issue {
	if o.namespace != "" {
		what += " (for callers in namespace " + o.namespace + ")"
	}
	return env.handWrittenIssue(o.ref, what, hint)
}

// named lists the objects that name a host without a wildcard, ascending.
func (x *hostIndex) named(host string) []handWrittenObject {
	out := slices.Clone(x.exact[host])
	slices.SortFunc(out, func(a, b handWrittenObject) int { return a.ref.Compare(b.ref) })
	return slices.Compact(out)
}
