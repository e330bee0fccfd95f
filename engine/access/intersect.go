package access

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Bounds of what follows from the policies on several services: who adds services
// must not make an object too large to write, or a plan that takes long.
const (
	// maxRules is the number of rules for one service.
	maxRules = 256
	// maxSize is the number of their sources, paths, methods and ports.
	maxSize = 10_000
	// maxComparisons is enough for four pairs of policies with a thousand paths each.
	maxComparisons = 1 << 22
)

// Intersection computes what the AccessPolicies on several services allow together: never more
// than those on each of them. It does a bounded amount of work.
type Intersection struct {
	mesh        *snapshot.MeshPlan
	comparisons int
	lost        []Lost
}

// Lost are two patterns that some requests match both, and that cannot be written as one.
type Lost struct {
	// Policy is the one that has Pattern, and With the one that has Other.
	Policy, With snapshot.Ref
	// Field of both policies is allowedPaths or allowedMethods.
	Field          string
	Pattern, Other string
}

// NewIntersection compares identities as a mesh does.
func NewIntersection(mesh *snapshot.MeshPlan) *Intersection { return &Intersection{mesh: mesh} }

// Lost are the first patterns of each two rules that are not in what both allow, so far.
func (x *Intersection) Lost() []Lost { return x.lost }

// Of narrows rules to what each set of rules allows, too; false if too much follows.
// Each rule is narrowed by itself: a set may keep one of them as it is, and narrow another
// that contains it.
func (x *Intersection) Of(rules []snapshot.EffectiveRule, sets [][]snapshot.EffectiveRule) ([]snapshot.EffectiveRule, bool) {
	var out []snapshot.EffectiveRule
	for i := range rules {
		left := []snapshot.EffectiveRule{rules[i]}
		for _, set := range sets {
			var ok bool
			if left, ok = x.narrow(left, set); !ok {
				return nil, false
			}
		}
		for _, rule := range left {
			out = x.add(out, rule)
		}
	}
	size := 0
	for i := range out {
		size += sizeOf(&out[i])
	}
	if len(out) > maxRules || size > maxSize || x.comparisons > maxComparisons {
		return nil, false
	}
	return out, true
}

// narrow narrows rules to what one set of rules allows, too; false if too much follows.
func (x *Intersection) narrow(rules, set []snapshot.EffectiveRule) ([]snapshot.EffectiveRule, bool) {
	var next []snapshot.EffectiveRule
	for i := range rules {
		if x.Keeps(set, &rules[i]) {
			next = x.add(next, rules[i])
			continue
		}
		for k := range set {
			if rule, ok := x.Both(&rules[i], &set[k]); ok {
				next = x.add(next, rule)
			}
			if len(next) > maxRules || x.comparisons > maxComparisons {
				return nil, false
			}
		}
	}
	return next, true
}

// Keeps reports whether a set of rules keeps a rule as it is. A policy on both services
// is meant for the ports of both.
func (x *Intersection) Keeps(set []snapshot.EffectiveRule, rule *snapshot.EffectiveRule) bool {
	return slices.ContainsFunc(set, func(s snapshot.EffectiveRule) bool { return s.Policy == rule.Policy }) || x.AnyContains(set, rule)
}

// add adds a rule, and leaves out those that another one contains.
func (x *Intersection) add(rules []snapshot.EffectiveRule, rule snapshot.EffectiveRule) []snapshot.EffectiveRule {
	if x.AnyContains(rules, &rule) {
		return rules
	}
	return append(slices.DeleteFunc(rules, func(r snapshot.EffectiveRule) bool { return x.Contains(&rule, &r) }), rule)
}

// Both is what two rules allow; false if that is nothing.
func (x *Intersection) Both(a, b *snapshot.EffectiveRule) (snapshot.EffectiveRule, bool) {
	out := snapshot.EffectiveRule{Policy: a.Policy, With: append(slices.Clone(a.With), b.Policy), Anyone: a.Anyone && b.Anyone}
	slices.SortFunc(out.With, snapshot.Ref.Compare)
	out.With = slices.Compact(out.With)
	var sources, paths, methods, ports bool
	out.Sources, sources = x.commonSources(a, b)
	out.Methods, methods = common(x, a.Methods, b.Methods, patternContains)
	out.PodPorts, ports = common(x, a.PodPorts, b.PodPorts, equal[uint32])
	if !sources || !ports {
		return out, false
	}
	x.findLost(Lost{Policy: a.Policy, With: b.Policy, Field: "allowedMethods"}, a.Methods, b.Methods, out.Methods)
	if !methods {
		return out, false
	}
	out.Paths, paths = common(x, a.Paths, b.Paths, patternContains)
	x.findLost(Lost{Policy: a.Policy, With: b.Policy, Field: "allowedPaths"}, a.Paths, b.Paths, out.Paths)
	return out, paths
}

// Meet reports whether two rules allow something together. What is lost is not noted.
func (x *Intersection) Meet(a, b *snapshot.EffectiveRule) bool {
	_, some := NewIntersection(x.mesh).Both(a, b)
	return some
}

// commonSources are callers that are among the sources of both.
func (x *Intersection) commonSources(a, b *snapshot.EffectiveRule) ([]snapshot.Source, bool) {
	switch {
	case a.Anyone:
		return b.Sources, true
	case b.Anyone:
		return a.Sources, true
	}
	var out []snapshot.Source
	for _, first := range a.Sources {
		for _, second := range b.Sources {
			x.comparisons++
			both, ok := x.commonSource(first, second)
			if ok && !slices.ContainsFunc(out, func(s snapshot.Source) bool { return x.sourceContains(s, both) }) {
				out = append(out, both)
			}
		}
	}
	return out, len(out) > 0
}

func (x *Intersection) commonSource(a, b snapshot.Source) (snapshot.Source, bool) {
	identities, some := common(x, a.Identities, b.Identities, x.identityContains)
	namespaces, anywhere := common(x, a.Namespaces, b.Namespaces, equal[string])
	if !some || !anywhere {
		return snapshot.Source{}, false
	}
	out := snapshot.Source{Identities: identities, Namespaces: namespaces}
	if len(identities) == 0 || len(namespaces) == 0 {
		return out, true
	}
	out.Identities = slices.DeleteFunc(slices.Clone(identities), func(id snapshot.Identity) bool {
		return id.Namespace != "" && !slices.Contains(namespaces, id.Namespace)
	})
	if x.sourceContains(snapshot.Source{Namespaces: namespaces}, snapshot.Source{Identities: out.Identities}) {
		out.Namespaces = nil // the identities say so
	}
	return out, len(out.Identities) > 0
}

// common lists what is in both of two lists: the elements of each that one of the other
// contains. An empty list means everything. It is false if there is nothing.
func common[T comparable](x *Intersection, a, b []T, contains func(wide, narrow T) bool) ([]T, bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	}
	x.comparisons += len(a) * len(b)
	var out []T
	for _, one := range a {
		if slices.ContainsFunc(b, func(wide T) bool { return contains(wide, one) }) {
			out = append(out, one)
		}
	}
	for _, one := range b {
		if !slices.Contains(a, one) && slices.ContainsFunc(a, func(wide T) bool { return contains(wide, one) }) {
			out = append(out, one)
		}
	}
	return out, len(out) > 0
}

// findLost notes the first patterns of two lists that overlap, and are not in what both allow.
func (x *Intersection) findLost(lost Lost, a, b, both []string) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	in := func(pattern string) bool { return slices.Contains(both, pattern) }
	left := slices.DeleteFunc(slices.Clone(a), in)
	others := slices.DeleteFunc(slices.Clone(b), in)
	for _, lost.Pattern = range left {
		for _, lost.Other = range others {
			if ParsePattern(lost.Pattern).Overlaps(ParsePattern(lost.Other)) {
				x.lost = append(x.lost, lost)
				return
			}
		}
	}
}

// sizeOf counts what a rule lists.
func sizeOf(rule *snapshot.EffectiveRule) int {
	n := len(rule.Paths) + len(rule.Methods) + len(rule.PodPorts)
	for _, s := range rule.Sources {
		n += len(s.Identities) + len(s.Namespaces)
	}
	return n
}
