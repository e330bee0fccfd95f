package access

import (
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// matchesPath matches as Istio and Envoy do.
func matchesPath(pattern, path string) bool {
	if strings.Contains(pattern, "{") {
		expr := strings.NewReplacer(`\{\*\*\}`, ".*", `\{\*\}`, "[^/]+").Replace(regexp.QuoteMeta(pattern))
		return regexp.MustCompile("^" + expr + "$").MatchString(path)
	}
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(path, suffix)
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return path == pattern
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchesPath(p, path) })
}

// TestCommonPaths: what is in both of two lists is exactly what both match, except
// where that cannot be written: then it is less, and said.
func TestCommonPaths(t *testing.T) {
	t.Parallel()
	patterns := []string{"*", "/*", "/a", "/a/b", "/a*", "/a/*", "/a/b*", "*b", "*/b", "*/a/b", "/a/{*}", "/a/{**}", "/{*}/b", "/c"}
	paths := []string{"/", "/a", "/ab", "/a/", "/a/b", "/a/b/c", "/b", "/a/c", "/c/b", "/c/a/b", "/c", "/cb"}
	r := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	few := func() []string {
		var out []string
		for range 1 + r.Intn(3) {
			out = append(out, patterns[r.Intn(len(patterns))])
		}
		return out
	}
	exact, less := 0, 0
	for range 5000 {
		a := snapshot.EffectiveRule{Policy: snapshot.Ref{Name: "a"}, Anyone: true, Paths: few()}
		b := snapshot.EffectiveRule{Policy: snapshot.Ref{Name: "b"}, Anyone: true, Paths: few()}
		x := NewIntersection(nil)
		both, ok := x.Both(&a, &b)
		require.Equal(t, ok, len(both.Paths) > 0)
		for _, path := range paths {
			want := anyMatches(a.Paths, path) && anyMatches(b.Paths, path)
			got := anyMatches(both.Paths, path)
			at := fmt.Sprintf("%s: %v and %v are %v", path, a.Paths, b.Paths, both.Paths)
			switch {
			case got:
				require.True(t, want, at)
				exact++
			case want:
				require.NotEmpty(t, x.Lost(), at)
				less++
			}
		}
	}
	t.Logf("%d matches are kept, %d are lost and said", exact, less)
	require.Greater(t, exact, 1000)
	require.Greater(t, less, 1000)
}

func callersNamed(names ...string) []snapshot.Source {
	var out []snapshot.Source
	for _, name := range names {
		out = append(out, snapshot.Source{Identities: []snapshot.Identity{{TrustDomain: "x", Namespace: "n", ServiceAccount: name}}})
	}
	return out
}

// TestEffectiveRulesAreBounded: nobody gets in rather than an object that is too large, or a
// plan that takes too long.
func TestEffectiveRulesAreBounded(t *testing.T) {
	t.Parallel()
	rules := func(policy string, n int, fill func(i int, rule *snapshot.EffectiveRule)) []snapshot.EffectiveRule {
		var out []snapshot.EffectiveRule
		for i := range n {
			rule := snapshot.EffectiveRule{Policy: snapshot.Ref{Name: fmt.Sprint(policy, i)}, Anyone: true}
			fill(i, &rule)
			out = append(out, rule)
		}
		return out
	}
	paths := func(prefix string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(prefix, i))
		}
		return out
	}
	mesh := &snapshot.MeshPlan{TrustDomain: "x"}
	named := func(i int, rule *snapshot.EffectiveRule) {
		rule.Anyone, rule.Sources = false, callersNamed(fmt.Sprint(i))
	}
	onPort := func(i int, rule *snapshot.EffectiveRule) { rule.PodPorts = []uint32{uint32(i + 1)} }
	for name, c := range map[string]struct {
		own, other []snapshot.EffectiveRule
		rules      int // -1 if too many
	}{
		"as many as may be":     {rules("a", 16, named), rules("b", 16, onPort), 256},
		"too many rules":        {rules("a", 17, named), rules("b", 16, onPort), -1},
		"disjoint":              {rules("a", 100, onPort), rules("b", 100, func(i int, r *snapshot.EffectiveRule) { onPort(i+1000, r) }), 0},
		"the same conditions":   {rules("a", 100, onPort), rules("b", 100, onPort), 100},
		"a thousand paths each": {rules("a", 1, func(_ int, r *snapshot.EffectiveRule) { r.Paths = paths("/a", 1000) }), rules("b", 1, func(_ int, r *snapshot.EffectiveRule) { r.Paths = paths("/b", 1000) }), 0},
		"too many comparisons":  {rules("a", 5, func(_ int, r *snapshot.EffectiveRule) { r.Paths = paths("/a", 1000) }), rules("b", 1, func(_ int, r *snapshot.EffectiveRule) { r.Paths = paths("/b", 1000) }), -1},
		"too many paths to say": {rules("a", 1, func(_ int, r *snapshot.EffectiveRule) { r.Paths = paths("/a", 1000) }), rules("b", 11, named), -1},
	} {
		got, ok := NewIntersection(mesh).Of(c.own, [][]snapshot.EffectiveRule{c.other})
		assert.Equal(t, c.rules >= 0, ok, name)
		assert.Len(t, got, max(0, c.rules), name)
	}
}

// TestCommonSources are those that both name, as narrow as they can be written.
func TestCommonSources(t *testing.T) {
	t.Parallel()
	id := func(domain, namespace, account string) snapshot.Identity {
		return snapshot.Identity{TrustDomain: domain, Namespace: namespace, ServiceAccount: account}
	}
	ids := func(list ...snapshot.Identity) snapshot.Source { return snapshot.Source{Identities: list} }
	in := func(source snapshot.Source, namespaces ...string) snapshot.Source {
		source.Namespaces = namespaces
		return source
	}
	x := NewIntersection(&snapshot.MeshPlan{TrustDomain: "x", TrustAliases: []string{"alias"}})
	for name, c := range map[string]struct{ a, b, want snapshot.Source }{
		"account and namespace":        {ids(id("x", "n", "web")), ids(id("x", "n", "")), ids(id("x", "n", "web"))},
		"account and trust domain":     {ids(id("x", "", "")), ids(id("x", "n", "web"), id("y", "n", "web")), ids(id("x", "n", "web"))},
		"alias of the trust domain":    {ids(id("x", "n", "")), ids(id("alias", "n", "web")), ids(id("alias", "n", "web"))},
		"other accounts":               {ids(id("x", "n", "web")), ids(id("x", "n", "batch")), snapshot.Source{}},
		"namespaces":                   {in(ids(), "n", "m"), in(ids(), "m", "o"), in(ids(), "m")},
		"other namespaces":             {in(ids(), "n"), in(ids(), "m"), snapshot.Source{}},
		"account in a namespace":       {ids(id("x", "n", "web"), id("x", "o", "web")), in(ids(), "n", "m"), ids(id("x", "n", "web"))},
		"account in another namespace": {ids(id("x", "n", "web")), in(ids(), "m"), snapshot.Source{}},
		"trust domain and a namespace": {ids(id("x", "", "")), in(ids(), "n"), in(ids(id("x", "", "")), "n")},
	} {
		for _, pair := range [][2]snapshot.Source{{c.a, c.b}, {c.b, c.a}} {
			got, ok := x.commonSource(pair[0], pair[1])
			if assert.Equal(t, len(c.want.Identities)+len(c.want.Namespaces) > 0, ok, name); ok {
				assert.Equal(t, c.want, got, name)
			}
		}
	}
}

// TestLostMethods: methods that overlap are reported as paths are, if the two cannot be written as
// one.
func TestLostMethods(t *testing.T) {
	t.Parallel()
	a := snapshot.EffectiveRule{Policy: snapshot.Ref{Name: "a"}, Anyone: true, Methods: []string{"P*"}}
	b := snapshot.EffectiveRule{Policy: snapshot.Ref{Name: "b"}, Anyone: true, Methods: []string{"*T"}}
	both := NewIntersection(nil)
	_, ok := both.Both(&a, &b)
	assert.False(t, ok)
	assert.Equal(t, []Lost{{Policy: a.Policy, With: b.Policy, Field: "allowedMethods", Pattern: "P*", Other: "*T"}}, both.Lost())
}
