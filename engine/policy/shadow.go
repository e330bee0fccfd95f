package policy

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/access"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// candidate is a future route: a match and the policies that have it.
type candidate struct {
	match    snapshot.Match
	policies []matcherOf
}

type matcherOf struct {
	applied int
	// matcher is the place in httpRequestMatchers; -1 for any request.
	matcher int
}

// warnOfShadows warns policies with matchers that never apply, because an earlier
// route matches all their requests. More specific matches come first, so only a
// regular expression or a path that ignores case can do that; without one, nothing is
// compared.
func (env *environment) warnOfShadows(self int, out *acceptance) {
	if !slices.ContainsFunc(out.applied, func(a snapshot.AppliedTraffic) bool {
		return slices.ContainsFunc(a.Spec.HttpRequestMatchers, func(m networkingv1.HttpMatcher) bool { return canShadow(&m) })
	}) {
		return
	}
	alike := env.viewKeys(self, out.applied)
	seen := map[string]bool{}
	for _, viewer := range env.topology.Viewers(self) {
		kind := alike(viewer)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		list := env.candidates(out.applied, viewer.Cluster)
		var before []*candidate // those with paths that can shadow others
		for _, c := range list {
			for _, b := range before {
				if covers(b.match, c.match) {
					out.warnOfShadow(b, c)
					break
				}
			}
			if c.match.Request != nil && canShadow(c.match.Request) {
				before = append(before, c)
			}
		}
	}
}

// candidates are the matches of all policies in the order of the routes.
func (env *environment) candidates(applied []snapshot.AppliedTraffic, cluster string) []*candidate {
	byKey := map[string]*candidate{}
	var list []*candidate
	for i := range applied {
		spec := applied[i].Spec
		if spec.Policy == nil || !slices.ContainsFunc(features, func(f feature) bool { return f.route != nil && f.value(spec.Policy) != nil }) {
			continue
		}
		for _, m := range matches(spec, cluster) {
			key := env.matchKey(m)
			c := byKey[key]
			if c == nil {
				c = &candidate{match: m}
				byKey[key] = c
				list = append(list, c)
			}
			at := matcherOf{i, -1}
			for k := range spec.HttpRequestMatchers {
				if m.Request == &spec.HttpRequestMatchers[k] {
					at.matcher = k
				}
			}
			c.policies = append(c.policies, at)
		}
	}
	slices.SortStableFunc(list, func(a, b *candidate) int { return compareMatches(a.match, b.match) })
	return list
}

// warnOfShadow warns the policies of a match, except those that are also on the
// shadowing route.
func (a *acceptance) warnOfShadow(by, shadowed *candidate) {
	first := by.policies[0]
	owner := snapshot.RefOf(snapshot.TrafficPolicy, a.applied[first.applied].Policy)
	for _, p := range shadowed.policies {
		if slices.ContainsFunc(by.policies, func(b matcherOf) bool { return b.applied == p.applied }) {
			continue
		}
		which, field := "the policy without matchers", ""
		if p.matcher >= 0 {
			field = "httpRequestMatchers[" + strconv.Itoa(p.matcher) + "]"
			which = field
		}
		issue := snapshot.Warnf(snapshot.RuleShadowed, "make that regular expression narrower, or write this path as exact or regex, which are matched earlier",
			"%s never matches a request: httpRequestMatchers[%d] of TrafficPolicy %s comes first and matches all of them",
			which, first.matcher, owner.Identity()).At(field).CausedBy(owner)
		ref := snapshot.RefOf(snapshot.TrafficPolicy, a.applied[p.applied].Policy)
		v := &a.verdicts[a.verdictIndex[p.applied]]
		if issue = issue.On(ref, v.Destination); !slices.Contains(v.Issues, issue) {
			v.Issues = append(v.Issues, issue)
		}
	}
}

// canShadow reports whether a path can match everything that a later one matches.
func canShadow(r *networkingv1.HttpMatcher) bool {
	return r.Uri != nil && (r.Uri.Regex != "" || r.Uri.IgnoreCase)
}

// covers reports whether a certainly matches every request that b matches.
func covers(a, b snapshot.Match) bool {
	if (a.SourceNamespace != "" && a.SourceNamespace != b.SourceNamespace) || !inventory.MatchLabels(a.SourceLabels, b.SourceLabels) {
		return false
	}
	return access.MatcherContains(a.Request, b.Request)
}
