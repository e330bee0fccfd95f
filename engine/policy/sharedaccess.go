package policy

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// accessSet are the AccessPolicies in force on a service.
type accessSet struct {
	destination int
	rules       []*snapshot.AccessRule
	// effective are those that allow anybody.
	effective []snapshot.EffectiveRule
}

// same reports whether two services have the same policies, for the same ports of pods.
func (a *accessSet) same(b *accessSet) bool {
	return slices.Equal(a.rules, b.rules) && slices.EqualFunc(a.effective, b.effective, func(x, y snapshot.EffectiveRule) bool {
		return slices.Equal(x.PodPorts, y.PodPorts)
	})
}

// maxAccessSets bounds the different sets of policies on services with the same pods.
const maxAccessSets = 64

func (r *reconciler) accessSetOf(i int) accessSet {
	set := accessSet{destination: i, rules: rulesOn(r, i, r.attached[i].access, false)}
	for _, rule := range set.rules {
		if rule.Anyone || len(rule.Sources) > 0 {
			set.effective = append(set.effective, effectiveRule(rule, r.env.inv.Destinations[i].Spec.KubeService))
		}
	}
	return set
}

// accessSets are the different sets of policies on a group of services, in the order of
// the first service of each; false if there are more than maxAccessSets. Services without
// policies restrict nothing.
func (r *reconciler) accessSets(group int) ([]accessSet, bool) {
	if sets, ok := r.sets[group]; ok {
		return sets, len(sets) <= maxAccessSets
	}
	var sets []accessSet
	for _, i := range r.env.shared.groups[group] {
		set := r.accessSetOf(i)
		if len(set.rules) > 0 && !slices.ContainsFunc(sets, func(other accessSet) bool { return set.same(&other) }) {
			sets = append(sets, set)
		}
		if len(sets) > maxAccessSets {
			break
		}
	}
	if r.sets == nil {
		r.sets = map[int][]accessSet{}
	}
	r.sets[group] = sets
	return sets, len(sets) <= maxAccessSets
}

// sharing is how the policies on a service are restricted by those on services with the
// same pods.
type sharing struct {
	// with is Callers.SharedWith, and rules are Callers.Rules.
	with   []snapshot.Ref
	rules  []snapshot.EffectiveRule
	issues map[snapshot.Ref][]snapshot.Issue // by policy
}

func (s *sharing) issuesOf(policy snapshot.Ref) []snapshot.Issue {
	if s == nil {
		return nil
	}
	return s.issues[policy]
}

// sharingOf evaluates the policies on services that share pods with a Destination; nil if
// they do not restrict its own. Each pair of services restricts each other: a pod that
// both select is as closed as both say.
func (r *reconciler) sharingOf(i int) *sharing {
	groups := r.env.shared.of[i]
	if len(groups) == 0 {
		return nil
	}
	own := r.accessSetOf(i)
	if len(own.rules) == 0 {
		return nil
	}
	few := true
	var sets []accessSet
	for _, group := range groups {
		in, ok := r.accessSets(group)
		sets, few = append(sets, in...), few && ok
	}
	slices.SortFunc(sets, func(a, b accessSet) int { return a.destination - b.destination })
	both := access.NewIntersection(r.env.topology.MeshOf(r.env.inv.Destinations[i]))
	var others []accessSet
	for _, set := range sets {
		narrows := slices.ContainsFunc(own.effective, func(rule snapshot.EffectiveRule) bool { return !both.Keeps(set.effective, &rule) })
		if set.destination != i && (narrows || !few) && !slices.ContainsFunc(others, func(other accessSet) bool { return set.same(&other) }) {
			others = append(others, set)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return r.restricted(own, others, both, few)
}

// restricted evaluates the policies on services that restrict those on another one.
func (r *reconciler) restricted(own accessSet, others []accessSet, both *access.Intersection, few bool) *sharing {
	out := &sharing{issues: map[snapshot.Ref][]snapshot.Issue{}}
	sets := make([][]snapshot.EffectiveRule, 0, len(others))
	for _, set := range others {
		out.with = append(out.with, inventory.DestinationRef(r.env.inv.Destinations[set.destination]))
		sets = append(sets, set.effective)
	}
	if few {
		out.rules, few = both.Of(own.effective, sets)
	}
	if !few {
		for _, rule := range own.rules {
			issue := r.sharedIssue(own, others[0], "so many different AccessPolicies are on services with the same pods as service %s, such as service %s, that nobody may call them")
			issue.Severity = snapshot.Error
			out.issues[rule.Origin.Ref] = []snapshot.Issue{issue}
		}
		return out
	}
	for i := range own.effective {
		if rule := &own.effective[i]; !both.AnyContains(out.rules, rule) {
			out.issues[rule.Policy] = r.narrowingIssues(own, rule, others, both, out.rules)
		}
	}
	return out
}

// narrowingIssues warn that not all is allowed that a policy allows by itself.
func (r *reconciler) narrowingIssues(own accessSet, rule *snapshot.EffectiveRule, others []accessSet, both *access.Intersection, allowed []snapshot.EffectiveRule) []snapshot.Issue {
	by := slices.IndexFunc(others, func(set accessSet) bool { return !both.Keeps(set.effective, rule) })
	text := "service %s has pods that are also those of service %s: a call must be allowed by the AccessPolicies on both"
	if !slices.ContainsFunc(allowed, func(left snapshot.EffectiveRule) bool { return both.Meet(rule, &left) }) {
		text += ", and none that this policy allows is"
	}
	issues := []snapshot.Issue{r.sharedIssue(own, others[by], text)}
	if at := slices.IndexFunc(both.Lost(), func(l access.Lost) bool { return l.Policy == rule.Policy }); at >= 0 {
		l := both.Lost()[at]
		what := strings.ToLower(strings.TrimPrefix(l.Field, "allowed"))
		issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "write "+what+" of which one includes the other, or give the services different pods",
			"%s that match %s as well as %s of AccessPolicy %s.%s are not allowed: the two cannot be written as one %s",
			what, l.Pattern, l.Other, l.With.Name, l.With.Namespace, strings.TrimSuffix(what, "s")).At(l.Field).CausedBy(l.With))
	}
	return issues
}

func (r *reconciler) sharedIssue(own, other accessSet, text string) snapshot.Issue {
	a, b := r.env.inv.Destinations[own.destination], r.env.inv.Destinations[other.destination]
	return snapshot.Warnf(snapshot.PodsShared, "select both services in one AccessPolicy, or give the services different pods",
		text, inventory.ServiceName(a.Spec.KubeService.Ref), inventory.ServiceName(b.Spec.KubeService.Ref)).
		At("destinationSelector").CausedBy(inventory.DestinationRef(b))
}

// editSharedPods has all Destinations planned that share pods with one whose
// AccessPolicies changed.
func (r *reconciler) editSharedPods() {
	done := map[int]bool{}
	for i := range r.attached {
		if len(r.env.shared.of[i]) == 0 || !r.accessChanged(i) {
			continue
		}
		for _, group := range r.env.shared.of[i] {
			if done[group] {
				continue
			}
			done[group] = true
			for _, member := range r.env.shared.groups[group] {
				if len(r.attached[member].access) > 0 {
					r.edit(member)
				}
			}
		}
	}
}
