package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Bounds of what follows from the policies on several services: who adds services
// must not make an object too large to write, or a plan that takes long.
const (
	// maxEffectiveRules is the number of rules for one service.
	maxEffectiveRules = 256
	// maxJointSize is the number of their sources, paths, methods and ports.
	maxJointSize = 10_000
	// maxComparisons is enough for four pairs of policies with a thousand paths each.
	maxComparisons = 1 << 22
)

// joint computes what the policies on several services allow together: never more than
// those on each of them.
type joint struct {
	mesh        *snapshot.MeshPlan
	comparisons int
	// lost are pairs of paths that some requests match both, and that cannot be written
	// as one.
	lost []lostPaths
}

type lostPaths struct {
	policy, with snapshot.Ref
	path, other  string
}

// within narrows rules to what each set of rules allows, too; false if too much follows.
// Each rule is narrowed by itself: a set may leave one of them as it is, and narrow another
// that covers it.
func (j *joint) within(rules []snapshot.EffectiveRule, sets [][]snapshot.EffectiveRule) ([]snapshot.EffectiveRule, bool) {
	var out []snapshot.EffectiveRule
	for i := range rules {
		left := []snapshot.EffectiveRule{rules[i]}
		for _, set := range sets {
			var ok bool
			if left, ok = j.narrow(left, set); !ok {
				return nil, false
			}
		}
		for _, rule := range left {
			out = j.add(out, rule)
		}
	}
	size := 0
	for i := range out {
		size += sizeOf(&out[i])
	}
	if len(out) > maxEffectiveRules || size > maxJointSize || j.comparisons > maxComparisons {
		return nil, false
	}
	return out, true
}

// narrow narrows rules to what one set of rules allows, too; false if too much follows.
func (j *joint) narrow(rules, set []snapshot.EffectiveRule) ([]snapshot.EffectiveRule, bool) {
	var next []snapshot.EffectiveRule
	for i := range rules {
		if j.leaves(set, &rules[i]) {
			next = j.add(next, rules[i])
			continue
		}
		for k := range set {
			if rule, ok := j.both(&rules[i], &set[k]); ok {
				next = j.add(next, rule)
			}
			if len(next) > maxEffectiveRules || j.comparisons > maxComparisons {
				return nil, false
			}
		}
	}
	return next, true
}

// leaves reports whether a set of rules leaves a rule as it is. A policy on both services
// is meant for the ports of both.
func (j *joint) leaves(set []snapshot.EffectiveRule, rule *snapshot.EffectiveRule) bool {
	return slices.ContainsFunc(set, func(s snapshot.EffectiveRule) bool { return s.Policy == rule.Policy }) || j.covered(set, rule)
}

// add adds a rule, and leaves out those that another one covers.
func (j *joint) add(rules []snapshot.EffectiveRule, rule snapshot.EffectiveRule) []snapshot.EffectiveRule {
	if j.covered(rules, &rule) {
		return rules
	}
	return append(slices.DeleteFunc(rules, func(r snapshot.EffectiveRule) bool { return j.covers(&rule, &r) }), rule)
}

// both is what two rules allow; false if that is nothing.
func (j *joint) both(a, b *snapshot.EffectiveRule) (snapshot.EffectiveRule, bool) {
	out := snapshot.EffectiveRule{Policy: a.Policy, With: append(slices.Clone(a.With), b.Policy), Anyone: a.Anyone && b.Anyone}
	slices.SortFunc(out.With, snapshot.Ref.Compare)
	out.With = slices.Compact(out.With)
	var sources, paths, methods, ports bool
	out.Sources, sources = j.commonSources(a, b)
	out.Methods, methods = common(j, a.Methods, b.Methods, coversPattern)
	out.PodPorts, ports = common(j, a.PodPorts, b.PodPorts, equal[uint32])
	if !sources || !methods || !ports {
		return out, false
	}
	out.Paths, paths = common(j, a.Paths, b.Paths, coversPattern)
	j.findLost(a, b, out.Paths)
	return out, paths
}

// commonSources are callers that are among the sources of both.
func (j *joint) commonSources(a, b *snapshot.EffectiveRule) ([]snapshot.Source, bool) {
	switch {
	case a.Anyone:
		return b.Sources, true
	case b.Anyone:
		return a.Sources, true
	}
	var out []snapshot.Source
	for _, x := range a.Sources {
		for _, y := range b.Sources {
			j.comparisons++
			both, ok := j.commonSource(x, y)
			if ok && !slices.ContainsFunc(out, func(s snapshot.Source) bool { return j.coversSource(s, both) }) {
				out = append(out, both)
			}
		}
	}
	return out, len(out) > 0
}

func (j *joint) commonSource(a, b snapshot.Source) (snapshot.Source, bool) {
	identities, some := common(j, a.Identities, b.Identities, j.coversIdentity)
	namespaces, anywhere := common(j, a.Namespaces, b.Namespaces, equal[string])
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
	if j.coversSource(snapshot.Source{Namespaces: namespaces}, snapshot.Source{Identities: out.Identities}) {
		out.Namespaces = nil // the identities say so
	}
	return out, len(out.Identities) > 0
}

// common lists what is in both of two lists: the elements of each that one of the other
// covers. An empty list means everything. It is false if there is nothing.
func common[T comparable](j *joint, a, b []T, covers func(wide, narrow T) bool) ([]T, bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	}
	j.comparisons += len(a) * len(b)
	var out []T
	for _, x := range a {
		if slices.ContainsFunc(b, func(y T) bool { return covers(y, x) }) {
			out = append(out, x)
		}
	}
	for _, y := range b {
		if !slices.Contains(a, y) && slices.ContainsFunc(a, func(x T) bool { return covers(x, y) }) {
			out = append(out, y)
		}
	}
	return out, len(out) > 0
}

// findLost notes the first paths of two rules that overlap, and are not in what both allow.
func (j *joint) findLost(a, b *snapshot.EffectiveRule, both []string) {
	if len(a.Paths) == 0 || len(b.Paths) == 0 {
		return
	}
	in := func(path string) bool { return slices.Contains(both, path) }
	left := slices.DeleteFunc(slices.Clone(a.Paths), in)
	others := slices.DeleteFunc(slices.Clone(b.Paths), in)
	for _, x := range left {
		for _, y := range others {
			if access.ParsePattern(x).Overlaps(access.ParsePattern(y)) {
				j.lost = append(j.lost, lostPaths{a.Policy, b.Policy, x, y})
				return
			}
		}
	}
}

// covered reports whether one of the rules allows all that a rule allows.
func (j *joint) covered(rules []snapshot.EffectiveRule, rule *snapshot.EffectiveRule) bool {
	return slices.ContainsFunc(rules, func(r snapshot.EffectiveRule) bool { return j.covers(&r, rule) })
}

// covers reports whether a rule certainly allows all that another one allows.
func (j *joint) covers(wide, narrow *snapshot.EffectiveRule) bool {
	j.comparisons++
	if !wide.Anyone && (narrow.Anyone || !coversAll(j, wide.Sources, narrow.Sources, j.coversSource)) {
		return false
	}
	return coversAll(j, wide.PodPorts, narrow.PodPorts, equal[uint32]) &&
		coversAll(j, wide.Methods, narrow.Methods, coversPattern) && coversAll(j, wide.Paths, narrow.Paths, coversPattern)
}

func (j *joint) coversSource(wide, narrow snapshot.Source) bool {
	in := narrow.Namespaces
	if len(in) == 0 {
		for _, id := range narrow.Identities {
			if id.Namespace == "" {
				in = nil
				break
			}
			in = append(in, id.Namespace)
		}
	}
	return coversAll(j, wide.Identities, narrow.Identities, j.coversIdentity) && coversAll(j, wide.Namespaces, in, equal[string])
}

// coversAll reports whether each element of a list is covered by one of another list, in
// which nothing means everything.
func coversAll[T any](j *joint, wide, narrow []T, covers func(wide, narrow T) bool) bool {
	if len(wide) == 0 {
		return true
	}
	return len(narrow) > 0 && !slices.ContainsFunc(narrow, func(x T) bool {
		j.comparisons += len(wide)
		return !slices.ContainsFunc(wide, func(w T) bool { return covers(w, x) })
	})
}

// coversIdentity compares what certificates say: they do not name the cluster.
func (j *joint) coversIdentity(wide, narrow snapshot.Identity) bool {
	return j.mesh.SameTrustDomain(wide.TrustDomain, narrow.TrustDomain) &&
		(wide.Namespace == "" || wide.Namespace == narrow.Namespace) &&
		(wide.ServiceAccount == "" || wide.ServiceAccount == narrow.ServiceAccount)
}

// coversPattern compares paths or methods.
func coversPattern(wide, narrow string) bool {
	return wide == narrow || access.ParsePattern(wide).Contains(access.ParsePattern(narrow))
}

func equal[T comparable](a, b T) bool { return a == b }

// sizeOf counts what a rule lists.
func sizeOf(rule *snapshot.EffectiveRule) int {
	n := len(rule.Paths) + len(rule.Methods) + len(rule.PodPorts)
	for _, s := range rule.Sources {
		n += len(s.Identities) + len(s.Namespaces)
	}
	return n
}
