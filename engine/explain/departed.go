package explain

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about Destinations that are stored, and that the server does not count any more: those whose Service is gone stay for a
// grace period. Where clusters are not read, that follows from the statuses of policies.

// findDeparted notes the Destinations that, of the policies that select them, no stored status lists, although one lists all.
func (x storedReader) findDeparted() {
	selecting := map[snapshot.Ref]snapshot.Ref{}
	counted := map[snapshot.Ref]bool{}
	for _, ref := range sortedRefs(x.policies) {
		s := x.stored[ref]
		if s == nil || s.behind || !s.judged {
			continue
		}
		for i := range x.policies[ref].Verdicts {
			d := x.policies[ref].Verdicts[i].Destination
			if _, lists := s.targets[d.Key()]; lists || !s.listsAll {
				counted[d] = true
			} else {
				selecting[d] = ref
			}
		}
	}
	for d, by := range selecting {
		if !counted[d] {
			if x.departed == nil {
				x.departed = map[snapshot.Ref]string{}
			}
			x.departed[d] = fmt.Sprintf("the server does not count %s among the services of %s: the Service is gone or has just come", d.Name, kindAndName(by))
		}
	}
	for _, ref := range sortedRefs(x.departed) {
		x.issues.add(snapshot.Issue{Code: snapshot.StatusDiffers, Severity: snapshot.Warning, Ref: ref, Message: x.departed[ref], Hint: departedHint}, ref)
	}
}

// departedHint says how to know more of such a service.
const departedHint = "read the clusters themselves, without --no-clusters; it goes after the grace period if it is gone"

// departedFrom says that it is not known whether a Destination, or one in front of the same pods which is among some, is still there;
// empty if all are.
func departedFrom(x *Index, d *snapshot.DestinationPlan, others []*snapshot.DestinationPlan) string {
	if len(x.departed) == 0 {
		return ""
	}
	among := []snapshot.Ref{d.Ref}
	if d.Callers != nil {
		among = append(among, d.Callers.SharedWith...)
	}
	for _, o := range others {
		among = append(among, o.Ref)
	}
	at := slices.IndexFunc(among, func(ref snapshot.Ref) bool { return x.departed[ref] != "" })
	switch {
	case at < 0:
		return ""
	case at == 0:
		return x.departed[d.Ref] + "; ask again without --no-clusters"
	}
	return fmt.Sprintf("%s, and its pods are also those of %s: ask again without --no-clusters", x.departed[among[at]], d.Ref.Name)
}
