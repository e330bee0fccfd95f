package access_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestIntersectionAgrees ties the intersection of rules to the decision on calls: what it allows,
// the rules of each service allow; and what all of them allow, it allows or reports as lost. A rule
// that contains another one allows each call that that allows.
func TestIntersectionAgrees(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	mesh := &snapshot.MeshPlan{TrustDomain: "x", TrustAliases: []string{"alias"}}
	allowed, lost, contained := 0, 0, 0
	for range 6000 {
		sets := make([][]snapshot.EffectiveRule, 2+random.Intn(2))
		for i := range sets {
			for k := range 1 + random.Intn(2) {
				sets[i] = append(sets[i], randomRule(random, string(rune('a'+i))+string(rune('0'+k))))
			}
		}
		both := access.NewIntersection(mesh)
		together, ok := both.Of(sets[0], sets[1:])
		require.True(t, ok)
		for range 30 {
			call := randomCall(random)
			each := !slices.ContainsFunc(sets, func(rules []snapshot.EffectiveRule) bool { return !allows(mesh, call, rules...) })
			switch got := allows(mesh, call, together...); {
			case got:
				require.True(t, each, "%+v\nis allowed by %+v\nof %+v", call, together, sets)
				allowed++
			case each:
				require.NotEmpty(t, both.Lost(), "%+v\nis not allowed by %+v\nof %+v", call, together, sets)
				lost++
			}
			if wide, narrow := sets[0][0], sets[1][0]; allows(mesh, call, narrow) && both.Contains(&wide, &narrow) {
				contained++
				require.True(t, allows(mesh, call, wide), "%+v\nis allowed by %+v\nand not by %+v", call, narrow, wide)
			}
		}
	}
	assert.Greater(t, allowed, 1000)
	assert.Greater(t, lost, 100)
	assert.Greater(t, contained, 100)
}

func allows(mesh *snapshot.MeshPlan, call *snapshot.Call, rules ...snapshot.EffectiveRule) bool {
	return len(access.Decide(mesh, rules, call).By) > 0
}

func randomRule(random *rand.Rand, policy string) snapshot.EffectiveRule {
	out := snapshot.EffectiveRule{Policy: snapshot.Ref{Name: policy}, Anyone: random.Intn(3) == 0}
	for range random.Intn(3) {
		out.Paths = append(out.Paths, one(random, "*", "/a", "/a*", "/a/*", "*/b", "/a/{*}", "/{*}/b", "/{**}"))
	}
	for range random.Intn(3) {
		out.Methods = append(out.Methods, one(random, "*", "GET", "POST", "P*", "*T"))
	}
	for range random.Intn(2) {
		out.PodPorts = append(out.PodPorts, one[uint32](random, 1, 2))
	}
	for range 1 + random.Intn(2) {
		if out.Anyone {
			break
		}
		source := snapshot.Source{}
		for range random.Intn(3) {
			id := snapshot.Identity{TrustDomain: one(random, "x", "alias", "y"), Namespace: one(random, "", "n", "m")}
			if id.Namespace != "" {
				id.ServiceAccount = one(random, "", "web", "batch")
			}
			source.Identities = append(source.Identities, id)
		}
		if len(source.Identities) == 0 || random.Intn(3) == 0 {
			source.Namespaces = append(source.Namespaces, one(random, "n", "m"))
		}
		out.Sources = append(out.Sources, source)
	}
	return out
}

func randomCall(random *rand.Rand) *snapshot.Call {
	out := &snapshot.Call{HTTP: random.Intn(4) > 0, PodPort: one[uint32](random, 1, 2)}
	out.Method, out.Path = one(random, "GET", "POST", "PUT"), one(random, "/", "/a", "/a/b", "/a/c", "/c/b", "/a/b/c")
	if random.Intn(4) > 0 {
		out.Caller = &snapshot.Identity{TrustDomain: one(random, "x", "alias", "y"), Namespace: one(random, "n", "m"), ServiceAccount: one(random, "web", "batch")}
	}
	return out
}
