package engine_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestManyServicesInOneNamespace: 50,000 Services over one pod fill neither the other
// clusters nor the management cluster.
func TestManyServicesInOneNamespace(t *testing.T) {
	t.Parallel()
	in := flooded(enginetest.World(enginetest.Size{Services: 200, Clusters: 2, FederateEvery: 1}), 50_000)
	out := engine.Translate(in).Output
	counts := map[snapshot.Kind]map[string]int{}
	for o := range out.Objects {
		if counts[o.Ref.Kind] == nil {
			counts[o.Ref.Kind] = map[string]int{}
		}
		counts[o.Ref.Kind][o.Ref.Cluster]++
	}
	t.Log("ServiceEntries", counts[snapshot.ServiceEntry], "Destinations", counts[snapshot.Destination])
	// Namespace team-000 has 100 services of its own.
	require.Equal(t, 5_000+100+200, counts[snapshot.ServiceEntry][enginetest.Cluster(1)])
	require.Equal(t, 10_000+100+1+201, counts[snapshot.Destination][""])
}

// TestWhoIsFederatedStaysFederated: however many services come, those that are federated
// stay, and the same are left out when what was decided is stored, in part or all.
func TestWhoIsFederatedStaysFederated(t *testing.T) {
	t.Parallel()
	leftOut, came := 0, 0
	for seed := range seeds(t, rounds) {
		c := newCrowd(seed)
		limits := &settingsv1.FederationLimits{
			ServicesPerNamespace: uint32(3 + c.r.Intn(6)), ServicesPerCluster: uint32(8 + c.r.Intn(10)), EndpointsPerNamespace: uint32(5 + c.r.Intn(10)),
		}
		translator := engine.New(engine.Options{})
		var stored *snapshot.Input
		before := map[enginetest.Place]bool{}
		for step := range 8 {
			c.add(fmt.Sprint("team-", c.r.Intn(4)), c.r.Intn(7))
			in := c.input(limits, stored)
			state := translator.Translate(in)
			require.Equal(t, text(t, engine.Translate(in).Output), text(t, state.Output), "seed %d, step %d", seed, step)
			now := federated(state)
			for at := range before {
				require.True(t, now[at], "seed %d, step %d: %v is not federated any more", seed, step, at)
			}
			for range 3 {
				partly := translator.Translate(partlyStored(c.r, in, state))
				require.Equal(t, now, federated(partly), "seed %d, step %d: partly stored", seed, step)
			}
			stored = collected(in, state)
			require.Equal(t, now, federated(translator.Translate(stored)), "seed %d, step %d: stored", seed, step)
			require.LessOrEqual(t, len(now), int(limits.ServicesPerCluster))
			leftOut += len(c.services) - len(now)
			came += len(now) - len(before)
			before = now
		}
	}
	t.Log(came, "services were federated, and", leftOut, "times one was left out")
	require.Positive(t, came)
	require.Positive(t, leftOut)
}

// hostsOfOne are those of services of the namespace zone-of-one, among the hosts of a gateway and the names that it provides.
var hostsOfOne = regexp.MustCompile(hostOfOne + `,?|,` + hostOfOne)

const hostOfOne = `(?:{"name":)?"[^"]*\.zone-of-one\.svc\.[^"]*"(?:,"home":true})?`

// TestOneNamespaceTakesNothingFromOthers: what a namespace adds changes neither an object
// nor a status of another one, and no AuthorizationPolicy anywhere. A gateway passes connections
// on to its services, beside those of others.
func TestOneNamespaceTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	limits := &settingsv1.FederationLimits{ServicesPerNamespace: 5, EndpointsPerNamespace: 12}
	lines := func(state *snapshot.State, keep func(string) bool) []string {
		all := strings.Split(text(t, state.Output), "\n")
		for i, line := range all {
			if strings.HasPrefix(line, "Gateway ") {
				all[i] = hostsOfOne.ReplaceAllString(line, "")
			}
		}
		return slices.DeleteFunc(all, func(line string) bool { return !keep(line) })
	}
	others := func(line string) bool {
		return !strings.Contains(line, "zone-of-one") && !strings.HasPrefix(line, `status {"Ref":{"kind":"VirtualMesh"`) && !strings.HasPrefix(line, `status {"Ref":{"kind":"AccessPolicy"`)
	}
	authorization := func(line string) bool { return strings.HasPrefix(line, "AuthorizationPolicy ") }
	for seed := range seeds(t, rounds) {
		c := newCrowd(seed)
		for n := range 3 {
			c.add(fmt.Sprint("team-", n), 1+c.r.Intn(7))
		}
		before := engine.Translate(c.input(limits, nil))
		c.add("zone-of-one", 40)
		for at := range c.services {
			if at.Namespace == "zone-of-one" {
				c.pods[at] = 1 + c.r.Intn(4)
			}
		}
		in := c.input(limits, nil)
		after := engine.Translate(in)
		require.Equal(t, lines(before, others), lines(after, others), "seed %d", seed)
		require.LessOrEqual(t, inNamespace(federated(after), "zone-of-one"), 5)
		unlimited := engine.Translate(c.input(nil, nil))
		require.Len(t, lines(after, authorization), len(c.services)+2) // and the gateways
		require.Equal(t, lines(unlimited, authorization), lines(after, authorization), "seed %d", seed)
		require.Len(t, federated(unlimited), len(c.services))
	}
}

// TestPlacesOfAClusterAreShared: at the limit of the cluster, a namespace with many
// services leaves its fair share to others, which come later; but once all places are
// taken, nobody loses one.
func TestPlacesOfAClusterAreShared(t *testing.T) {
	t.Parallel()
	limits := &settingsv1.FederationLimits{ServicesPerNamespace: 8, ServicesPerCluster: 10}
	c := newCrowd(1)
	c.add("large", 20)
	c.add("small", 3)
	in := c.input(limits, nil)
	state := engine.Translate(in)
	require.Equal(t, 7, inNamespace(federated(state), "large"))
	require.Equal(t, 3, inNamespace(federated(state), "small"))

	c.add("late", 4)
	next := c.input(limits, collected(in, state))
	require.Equal(t, federated(state), federated(engine.Translate(next)))
	require.Equal(t, map[string]int{"large": 4, "small": 3, "late": 3}, func() map[string]int {
		now := federated(engine.Translate(c.input(limits, nil))) // with nothing stored
		return map[string]int{"large": inNamespace(now, "large"), "small": inNamespace(now, "small"), "late": inNamespace(now, "late")}
	}())
}

// TestLimitsThatChange: a lowered limit holds at once, the newest go first, and a raised
// one lets them in again.
func TestLimitsThatChange(t *testing.T) {
	t.Parallel()
	c := newCrowd(1)
	c.add("a", 6)
	c.add("b", 3)
	translator := engine.New(engine.Options{})
	var stored *snapshot.Input
	for _, step := range []struct{ namespace, cluster, endpoints, a, b uint32 }{
		{0, 0, 0, 6, 3},
		{4, 0, 0, 4, 3},
		{4, 5, 0, 3, 2}, // who has the most loses first
		{4, 2, 0, 1, 1},
		{4, 2, 0, 1, 1},
		{4, 5, 0, 3, 2},
		{0, 0, 2, 2, 2},
		{0, 0, 0, 6, 3},
	} {
		in := c.input(&settingsv1.FederationLimits{ServicesPerNamespace: step.namespace, ServicesPerCluster: step.cluster, EndpointsPerNamespace: step.endpoints}, stored)
		state := translator.Translate(in)
		now := federated(state)
		require.Equal(t, []int{int(step.a), int(step.b)}, []int{inNamespace(now, "a"), inNamespace(now, "b")}, "%+v", step)
		for in := range now {
			for out, created := range c.services {
				require.False(t, !now[out] && out.Namespace == in.Namespace && created < c.services[in], "%v is in, and %v out, although it is older", in, out)
			}
		}
		stored = collected(in, state)
	}
}

// TestDiscoveryLeavesOutTheNewest: what is stored stays discovered, with all policies, also
// when the limit is lowered; of the others the newest are left out.
func TestDiscoveryLeavesOutTheNewest(t *testing.T) {
	t.Parallel()
	c := newCrowd(1)
	c.add("a", 6)
	discovered := func(state *snapshot.State) (services, workloads int) {
		for _, d := range state.Discovered[0].Destinations {
			if d.Spec.KubeService.Ref.Namespace == "a" {
				services++
			}
		}
		for _, w := range state.Discovered[0].Workloads {
			if w.Spec.Kubernetes.Controller.Namespace == "a" {
				workloads++
			}
		}
		return services, workloads
	}
	translator := engine.New(engine.Options{})
	var stored *snapshot.Input
	for n, step := range []struct {
		limit     uint32
		add, want int
		issues    int
	}{
		{4, 0, 4, 2}, // one on services, one on workloads
		{4, 2, 4, 2},
		{6, 0, 6, 2},
		{2, 3, 6, 2}, // lowered: what is stored stays
		{0, 0, 11, 0},
		{2, 0, 11, 0},
	} {
		c.add("a", step.add)
		in := c.input(nil, stored)
		in.Management.Settings[0].Spec.Discovery = &settingsv1.DiscoverySettings{
			Limits: &settingsv1.DiscoveryLimits{ServicesPerNamespace: step.limit, WorkloadsPerNamespace: step.limit},
		}
		state := translator.Translate(in)
		require.Equal(t, text(t, engine.Translate(in).Output), text(t, state.Output), "step %d", n)
		services, workloads := discovered(state)
		require.Equal(t, []int{step.want, step.want}, []int{services, workloads}, "step %d", n)
		issues := 0
		for _, i := range state.Output.Issues {
			if i.Code == snapshot.BudgetExceeded {
				issues++
			}
		}
		require.Equal(t, step.issues, issues, "step %d", n)
		stored = collected(in, state)
		again := translator.Translate(stored)
		services, _ = discovered(again)
		require.Equal(t, step.want, services, "step %d, stored", n)
		if n == 0 {
			for _, d := range again.Discovered[0].Destinations {
				require.Less(t, d.CreationTimestamp.Unix(), int64(3), "the oldest are in")
			}
		}
	}
}

// TestLimitsFollowWhatIsStored: whatever turns out to be stored, such as after a restore of
// the management cluster, who is left out follows from that alone.
func TestLimitsFollowWhatIsStored(t *testing.T) {
	t.Parallel()
	changed := map[string]int{}
	enough := func() bool { return min(changed["federated"], changed["discovered"]) > 2*rounds }
	for seed := range seeds(t, rounds, enough) {
		c := newCrowd(seed)
		for n := range 3 {
			c.add(fmt.Sprint("team-", n), 4+c.r.Intn(4))
		}
		all := c.input(nil, nil)
		all = collected(all, engine.Translate(all))
		limited := c.input(&settingsv1.FederationLimits{ServicesPerNamespace: 3, ServicesPerCluster: 7}, nil)
		limited.Management.Settings[0].Spec.Discovery = &settingsv1.DiscoverySettings{
			Limits: &settingsv1.DiscoveryLimits{ServicesPerNamespace: 4, WorkloadsPerNamespace: 4},
		}
		translator := engine.New(engine.Options{})
		var discovered, others string
		for step := range 6 {
			in, m := *limited, *limited.Management
			in.Management = &m
			// What is stored is less than all, and not what is decided here.
			m.Workloads = half(c.r, all.Management.Workloads)
			for _, d := range half(c.r, all.Management.Destinations) {
				d = d.DeepCopy()
				if c.r.Intn(2) == 0 {
					d.Status.AppliedFederation = nil
				}
				m.Destinations = append(m.Destinations, d)
			}
			state := translator.Translate(&in)
			require.Equal(t, text(t, engine.Translate(&in).Output), text(t, state.Output), "seed %d, step %d", seed, step)
			if now := fmt.Sprint(federated(state)); now != others {
				changed["federated"]++
				others = now
			}
			if now := namesOf(state.Discovered[0].Destinations); now != discovered {
				changed["discovered"]++
				discovered = now
			}
		}
	}
	t.Log(changed)
}
