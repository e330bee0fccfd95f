package agent

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/shard"
)

// restarts are how often the control plane and each workload restart while two meshes join, while their root is exchanged, and
// while one leaves.
type restarts struct{ join, rotation, leave map[string]int }

// What a mesh needs is two exchanges of what its Secret has: first all have to trust the new root, and only then may it sign.
//
// Without ISTIO_MULTIROOT_MESH, istiod takes up other roots only when it starts, twice: to add the new root, and to drop the
// former one. A workload takes up what istiod has only when it starts (or renews its certificate, within a day), twice, too: to
// trust the new root, and to present a certificate of it. Dropping a root restarts no workload.
//
// With it, istiod starts once, because what it made for itself it reads only then. An exchange restarts nothing. To leave is an
// exchange, too.
var (
	plainRestarts = restarts{join: count2(2, 2), rotation: count2(2, 2), leave: count2(2, 2)}
	multiRestarts = restarts{join: count2(1, 0), rotation: count2(0, 0), leave: count2(0, 0)}
)

func count2(controlPlane, workloads int) map[string]int {
	out := map[string]int{storyControlPlane: controlPlane}
	for i := range storyWorkloads {
		out[workloadName(i)] = workloads
	}
	return out
}

// tell is the life of two meshes: they join, the root is exchanged, and one leaves. It ends the same whoever dies.
func tell(s *story, want restarts) {
	s.t.Helper()
	s.join("vm", s.meshes...)
	s.until("both have joined", func() bool { return s.established("vm") })
	first := s.trust("vm").Root.Fingerprint
	for _, m := range s.meshes {
		m.assertHas(first)
		m.assertRestarted(want.join)
	}
	s.rotate("vm")
	s.until("both have another root", func() bool { return s.established("vm") && s.trust("vm").Root.Fingerprint != first })
	second := s.trust("vm").Root.Fingerprint
	require.Len(s.t, s.rootSecrets(), 1, "the former root is dropped, and none was made twice")
	for _, m := range s.meshes {
		m.assertHas(second)
		m.assertRestarted(want.rotation)
	}
	s.join("vm", s.meshes[0])
	s.until("one has left", func() bool { return s.established("vm") && s.meshes[1].left() })
	s.meshes[0].assertHas(second)
	s.meshes[0].assertRestarted(count2(0, 0))
	s.meshes[1].assertRestarted(want.leave)
	require.Len(s.t, s.rootSecrets(), 1)
}

// assertRestarted checks how often each Deployment restarted since the last time, and that no cause restarted one twice.
func (m *storyMesh) assertRestarted(want map[string]int) {
	m.t.Helper()
	for _, name := range m.deployments() {
		causes := slices.Compact(slices.Sorted(slices.Values(m.restarts[name])))
		require.Len(m.t, causes, len(m.restarts[name]), "%s of %s restarts once for each cause: %v", name, m.name, m.restarts[name])
		require.Len(m.t, causes, want[name], "restarts of %s of %s, after: %s", name, m.name, strings.Join(m.story.died, "\n"))
	}
	clear(m.restarts)
}

// TestAnyPartDiesAtAnyWrite tells the story with processes of serve (the store of roots, what the engine asks for, the issuer)
// and of the agents that all die at their writes, and are followed by others that know only what is stored. It ends the same as if
// nobody died, nobody restarts more often, and at no moment is anybody presented a certificate that he does not trust.
func TestAnyPartDiesAtAnyWrite(t *testing.T) {
	t.Parallel()
	tellEach(t, map[string]tale{
		"everybody dies before and after each write": {always("", 0), false, 150},
		"the same with more roots than one":          {always("", 0), true, 100},
	})
}

// TestSomePartDiesAtSomeWrite tells the same story with fewer deaths, so that others go on beside those who died.
func TestSomePartDiesAtSomeWrite(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	tales := map[string]tale{
		"nobody dies":                     {lives, false, 0},
		"agents die at each third write":  {always("agent", 2), true, 10},
		"serve dies at each second write": {always("serve", 1), true, 10},
	}
	random := rand.New(rand.NewPCG(20, 26))
	for _, part := range []string{"serve", "agent of cluster-1", "agent of cluster-2"} {
		late := random.IntN(2) == 0
		tales["only one dies: "+part] = tale{dies(part, random.IntN(15), late), true, 1}
	}
	tellEach(t, tales)
}

// tale is a way in which the story is told.
type tale struct {
	plan  plan
	multi bool
	// deaths is how many there are at least.
	deaths int
}

func tellEach(t *testing.T, tales map[string]tale) {
	t.Helper()
	servers := storyServers(t)
	for i, name := range slices.Sorted(maps.Keys(tales)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, want := tales[name], plainRestarts
			if c.multi {
				want = multiRestarts
			}
			s := newStory(t, servers, "tale-"+string(rune('a'+i)), c.multi, c.plan)
			tell(s, want)
			t.Logf("%d writes, %d deaths, looked %d times who trusts whom", s.writes(), len(s.died), s.checks)
			assert.GreaterOrEqual(t, len(s.died), c.deaths)
		})
	}
}
