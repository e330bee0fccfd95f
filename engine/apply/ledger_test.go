package apply

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const host = "reviews.bookinfo.svc.cluster-2.global"

// ruleWith provides subsets of host.
func ruleWith(subsets ...string) *content {
	return providing(false, subsets...)
}

// atHome provides them in the cluster of the service.
func atHome(subsets ...string) *content { return providing(true, subsets...) }

func providing(home bool, subsets ...string) *content {
	c := &content{Content: &snapshot.Content{}}
	for _, name := range subsets {
		c.Relations.Provides = append(c.Relations.Provides, snapshot.Name{Name: host + "/" + name, Home: home})
	}
	return c
}

// routeTo needs host, and a subset of it.
func routeTo(subset string) *content {
	return &content{Content: &snapshot.Content{Relations: snapshot.Relations{Needs: []snapshot.Name{
		{Name: "passage to " + host}, {Name: host}, {Name: host + "/" + subset},
	}}}}
}

// anything neither needs nor provides something.
func anything() *content { return &content{Content: &snapshot.Content{}} }

// subset is the name of a subset of host.
func subset(of string) []name { return ruleWith(of).provides("") }

// in is an object in a cluster that can be written to.
func in(cluster string) *party { return &party{cluster: &reach{cluster, access{able: true}}} }

// TestRouteWaitsForWhatItNeeds: in time that does not pass by itself.
func TestRouteWaitsForWhatItNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		near, far := in("cluster-1"), in("cluster-3")
		rule := ruleWith("v3")
		needs := routeTo("v3").needs("")
		assert.True(t, l.provided(needs), "nobody will provide it: it is not ours to wait for")

		l.announce(near, rule.provides(""))
		l.announce(far, rule.provides(""))
		assert.False(t, l.provided(needs), "it is not written")
		l.reached(far.cluster, access{})
		l.wrote(near, nil, rule, true, time.Millisecond)
		assert.False(t, l.provided(needs), "proxies do not know it yet")
		time.Sleep(l.Debounce + l.Push)
		assert.True(t, l.provided(needs), "nobody waits for a cluster that cannot be written to")
		_, found := l.obstacle(needs)
		assert.False(t, found, "it only calls the service as well")
		l.reached(far.cluster, access{able: true})
		assert.False(t, l.provided(needs))
		l.wrote(far, nil, rule, false, 0)
		assert.True(t, l.provided(needs), "it was there before")
		assert.Empty(t, l.dependencies, "nothing is left to know")
	})
}

// TestRouteWaitsForTheClusterOfTheService if it cannot be written to: its gateways do
// not know what they are to pass on.
func TestRouteWaitsForTheClusterOfTheService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		home := in("cluster-2")
		l.announce(home, atHome("v3", "v4").provides(""))
		needs := routeTo("v3").needs("")
		_, found := l.obstacle(needs)
		assert.False(t, found, "it answers")
		l.refuses(home, true)
		o, _ := l.obstacle(needs)
		assert.Equal(t, obstacle{host + "/v3", snapshot.Ref{Cluster: "cluster-2"}, access{able: true}}, o)
		l.refuses(home, false)
		l.reached(home.cluster, access{})
		o, _ = l.obstacle(needs)
		assert.Equal(t, obstacle{host + "/v3", snapshot.Ref{Cluster: "cluster-2"}, access{}}, o)
		_, found = l.obstacle(routeTo("v1").needs(""))
		assert.False(t, found, "it has v1 already")
		l.retract(home, subset("v3"))
		_, found = l.obstacle(needs)
		assert.False(t, found, "it will not have it")
	})
}

// TestWhatAHeldRouteUsesStays: the route that proxies have is the one before.
func TestWhatAHeldRouteUsesStays(t *testing.T) {
	t.Parallel()
	l := newLedger(Pace{}.withDefaults())
	route := in("cluster-1")
	before, after := routeTo("v1"), routeTo("v3")
	l.wrote(route, nil, before, false, 0)
	l.intend(route, before.needs(""), after.needs(""), before.needs(""))
	assert.Equal(t, standing, l.use(subset("v1")))
	assert.Equal(t, coming, l.use(subset("v3")))
	l.holds(route, true)
	assert.Equal(t, held, l.use(subset("v1")))
	assert.Equal(t, unused, l.use(subset("v2")))
}

func isUsed(l *ledger, names []name) bool { return l.use(names) > unused }

// TestWhatARouteNeedsStays until the proxies know that the route is gone.
func TestWhatARouteNeedsStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		route := in("cluster-1")
		before, after := routeTo("v3"), routeTo("v1")
		lost := subset("v3")
		l.intend(route, nil, before.needs(""), nil)
		assert.True(t, isUsed(l, lost), "it will be written")
		l.wrote(route, nil, before, true, 0)
		l.intend(route, before.needs(""), after.needs(""), before.needs(""))
		assert.True(t, isUsed(l, lost), "proxies have it, whatever is wanted")
		l.wrote(route, before, after, true, 0)
		assert.True(t, isUsed(l, lost), "proxies do not know the change yet")
		time.Sleep(l.Debounce + l.Push)
		assert.False(t, isUsed(l, lost))
		assert.True(t, isUsed(l, subset("v1")))
		l.intend(route, after.needs(""), nil, after.needs(""))
		l.wrote(route, after, nil, true, 0)
		time.Sleep(l.Debounce + l.Push)
		assert.False(t, isUsed(l, after.needs("")))
		assert.Empty(t, l.dependencies, "nothing is left to know")
	})
}

// TestAUseThatContinues: the route is wanted again while it is written without the use.
func TestAUseThatContinues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		route := in("cluster-1")
		with, without := routeTo("v3"), routeTo("v1")
		l.intend(route, nil, with.needs(""), nil)
		l.wrote(route, nil, with, true, 0)
		l.intend(route, with.needs(""), without.needs(""), with.needs(""))
		l.intend(route, without.needs(""), with.needs(""), with.needs(""))
		l.wrote(route, with, without, true, 0)
		l.wrote(route, without, with, true, 0)
		time.Sleep(l.Debounce + l.Push)
		assert.True(t, isUsed(l, subset("v3")))
	})
}

// TestABusyControlPlaneTakesLonger: changes without a pause are one to it, and its
// answers tell how fast it is.
func TestABusyControlPlaneTakesLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		rule := ruleWith("v3")
		l.wrote(in("cluster-1"), nil, rule, true, 0)
		for range 10 {
			time.Sleep(l.Debounce / 2)
			l.wrote(in("cluster-1"), nil, anything(), true, 100*time.Millisecond)
		}
		time.Sleep(l.Debounce + l.Push)
		assert.False(t, l.provided(rule.provides("")), "a write takes 100 ms: so does all else")
		time.Sleep(time.Second)
		assert.True(t, l.provided(rule.provides("")))

		l.wrote(in("cluster-1"), nil, ruleWith("v4"), true, 0)
		for start := time.Now(); time.Since(start) < l.DebounceMost+time.Second; time.Sleep(l.Debounce / 2) {
			l.wrote(in("cluster-1"), nil, anything(), true, 0)
		}
		assert.True(t, l.provided(subset("v4")), "it collects changes for a limited time")
	})
}

// TestEachClusterHasItsOwnPace: a route waits for the proxies of the slowest one that it
// needs something of, and for no other.
func TestEachClusterHasItsOwnPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		usual := l.settled()
		l.follow(map[string]snapshot.Debounce{
			"fast": {After: 10 * time.Millisecond, Most: time.Second}, "slow": {After: 3 * time.Second, Most: 20 * time.Second},
		})
		fast, slow, both := ruleWith("fast"), ruleWith("slow"), ruleWith("fast", "slow")
		wait := func() time.Duration {
			start := time.Now()
			for !l.provided(both.provides("")) {
				time.Sleep(time.Millisecond)
			}
			return time.Since(start)
		}
		l.wrote(in("fast"), nil, fast, true, 0)
		assert.Equal(t, 10*time.Millisecond+l.Push, wait())
		l.wrote(in("usual"), nil, fast, true, 0)
		assert.Equal(t, usual, wait())
		l.wrote(in("fast"), nil, fast, true, 0)
		l.wrote(in("slow"), nil, slow, true, 0)
		assert.Equal(t, 3*time.Second+l.Push, wait())
		assert.Equal(t, 3*time.Second+l.Push, l.settled())
		assert.LessOrEqual(t, l.usual(), l.Patience)

		// A write every two seconds: one change to the slow one, until it has collected
		// for 20 seconds and looks once more 3 seconds later; many changes to the fast one.
		l.wrote(in("slow"), nil, slow, true, 0)
		start := time.Now()
		for !l.provided(slow.provides("")) {
			l.wrote(in("slow"), nil, anything(), true, 0)
			time.Sleep(2 * time.Second)
		}
		assert.Equal(t, 24*time.Second, time.Since(start))
		l.wrote(in("fast"), nil, fast, true, 0)
		time.Sleep(2 * time.Second)
		l.wrote(in("fast"), nil, anything(), true, 0)
		assert.False(t, l.provided(fast.provides("")))
		time.Sleep(l.Push)
		assert.True(t, l.provided(fast.provides("")))

		// Configured as usual again.
		l.follow(nil)
		l.wrote(in("slow"), nil, slow, true, 0)
		assert.Equal(t, usual, wait())
	})
}

// TestAHostFollowsItsConnections in the same change: proxies use neither alone.
func TestAHostFollowsItsConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(Pace{}.withDefaults())
		const connections = "connections to reviews.global"
		rule := &content{Content: &snapshot.Content{Relations: snapshot.Relations{Provides: []snapshot.Name{{Name: connections, Together: true}}}}}
		needs := (&content{Content: &snapshot.Content{Relations: snapshot.Relations{Needs: []snapshot.Name{{Name: connections}}}}}).needs("")
		i := in("cluster-1")
		l.announce(i, rule.provides(""))
		assert.False(t, l.provided(needs), "it is not written")
		l.wrote(i, nil, rule, true, time.Millisecond)
		assert.True(t, l.provided(needs))
	})
}
