package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// alsoVirtual says which objects of users are about the host of a
// VirtualDestination in a mesh, and what follows. A pattern that covers the host
// of a ServiceEntry is no clash: the longer name wins.
func (w *world) alsoVirtual(host string, mesh *snapshot.MeshPlan) []snapshot.Issue {
	hand := w.byHand[mesh.Cluster]
	if hand == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, o := range hand.rules.about(host) {
		issues = append(issues, w.handClash(o, "also sets how "+host+" is connected to, and the mesh decides which of the two holds: failing endpoints may stay in use, so that nothing takes over",
			"remove it, or let it name hosts that do not include that one"))
	}
	for _, o := range hand.entries.exactly(host) {
		issues = append(issues, w.handClash(o, "also says what stands behind "+host+", and the mesh decides which of the two holds",
			"remove it, or choose another hostname"))
	}
	return issues
}

// alsoOutside says which ServiceEntries of users are about services outside all
// clusters to which a policy sends requests.
func (s *setting) alsoOutside(hand *handWritten) []snapshot.Issue {
	shift := s.spec.Policy.TrafficShift
	if shift == nil || hand.entries.empty() {
		return nil
	}
	var issues []snapshot.Issue
	for i := range shift.Destinations {
		to := shift.Destinations[i].StaticDestination
		if to == nil {
			continue
		}
		if d := s.world.external(*to); d != nil {
			for _, host := range d.Spec.ExternalService.Hosts {
				for _, o := range hand.entries.exactly(host) {
					issues = append(issues, s.world.handClash(o, "also says where "+host+" is, and the mesh decides which of the two holds",
						"remove it: Destination "+d.Name+"."+d.Namespace+" says the same"))
				}
			}
		}
	}
	return issues
}

// handClash is the issue that an object is about the same host as one of ours.
func (w *world) handClash(o handWrittenObject, what, hint string) snapshot.Issue {
	if o.only != "" {
		what += " (for callers in namespace " + o.only + ")"
	}
	return w.handIssue(o.ref, what, hint)
}

// exactly lists the objects of a host that are not about others, too, ascending.
func (x *hostIndex) exactly(host string) []handWrittenObject {
	out := slices.Clone(x.exact[host])
	slices.SortFunc(out, func(a, b handWrittenObject) int { return a.ref.Compare(b.ref) })
	return slices.Compact(out)
}
