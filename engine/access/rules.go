package access

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Contains reports whether a rule certainly allows all that another one allows.
func (x *Intersection) Contains(wide, narrow *snapshot.EffectiveRule) bool {
	x.comparisons++
	if !wide.Anyone && (narrow.Anyone || !containsAll(x, wide.Sources, narrow.Sources, x.sourceContains)) {
		return false
	}
	return containsAll(x, wide.PodPorts, narrow.PodPorts, equal[uint32]) &&
		containsAll(x, wide.Methods, narrow.Methods, patternContains) && containsAll(x, wide.Paths, narrow.Paths, patternContains)
}

// AnyContains reports whether one of several rules certainly allows all that another one allows.
func (x *Intersection) AnyContains(rules []snapshot.EffectiveRule, rule *snapshot.EffectiveRule) bool {
	return slices.ContainsFunc(rules, func(r snapshot.EffectiveRule) bool { return x.Contains(&r, rule) })
}

func (x *Intersection) sourceContains(wide, narrow snapshot.Source) bool {
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
	return containsAll(x, wide.Identities, narrow.Identities, x.identityContains) && containsAll(x, wide.Namespaces, in, equal[string])
}

// identityContains compares what certificates say: they do not name the cluster.
func (x *Intersection) identityContains(wide, narrow snapshot.Identity) bool {
	return x.mesh.SameTrustDomain(wide.TrustDomain, narrow.TrustDomain) &&
		(wide.Namespace == "" || wide.Namespace == narrow.Namespace) &&
		(wide.ServiceAccount == "" || wide.ServiceAccount == narrow.ServiceAccount)
}

// patternContains compares paths or methods.
func patternContains(wide, narrow string) bool {
	return wide == narrow || ParsePattern(wide).Contains(ParsePattern(narrow))
}

func equal[T comparable](a, b T) bool { return a == b }

// containsAll reports whether each element of a list is contained in one of another list, in which
// nothing means everything.
func containsAll[T any](x *Intersection, wide, narrow []T, contains func(wide, narrow T) bool) bool {
	if len(wide) == 0 {
		return true
	}
	return len(narrow) > 0 && !slices.ContainsFunc(narrow, func(n T) bool {
		x.comparisons += len(wide)
		return !slices.ContainsFunc(wide, func(w T) bool { return contains(w, n) })
	})
}
