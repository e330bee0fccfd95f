package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

func world() *snapshot.Input {
	return enginetest.World(enginetest.Size{Services: 4, Clusters: 2, FederateEvery: 1})
}

// page is what a proxy says that has been running for some seconds, of requests to hosts a0, a1, …
func page(uptime int, requests ...int) string {
	var b strings.Builder
	if uptime > 0 {
		fmt.Fprintf(&b, "envoy_server_uptime{} %d\n", uptime)
	}
	for i, n := range requests {
		if n >= 0 {
			fmt.Fprintf(&b, "envoy_cluster_upstream_rq{cluster_name=\"outbound|80||a%d\",response_code_class=\"2xx\"} %d\n", i, n)
		}
	}
	return b.String()
}

// TestBook: what a reading adds depends on those before.
func TestBook(t *testing.T) {
	t.Parallel()
	type reading struct {
		seconds int
		page    string
		want    uint64
	}
	for name, readings := range map[string][]reading{
		"one that ran before is a base":          {{10, page(100, 50), 0}, {25, page(115, 60), 10}, {40, page(130, 60), 0}},
		"one that started since counts":          {{30, page(15, 50), 50}, {45, page(30, 51), 1}},
		"one that may have run before is a base": {{30, page(25, 50), 0}, {45, page(40, 51), 1}},
		"a restart begins again at 0":            {{10, page(100, 50), 0}, {25, page(5, 7), 7}, {40, page(20, 9), 2}},
		"also if it has overtaken":               {{10, page(100, 50), 0}, {25, page(5, 70), 70}},
		"uptime of the last flush":               {{10, page(100, 50), 0}, {29, page(110, 60), 10}, {40, page(130, 70), 10}, {59, page(140, 70), 0}},
		"a flush that is a minute ago":           {{10, page(100, 50), 0}, {69, page(100, 60), 10}, {70, page(160, 70), 10}},
		"uptime in whole seconds":                {{10, page(100, 50), 0}, {25, page(114, 60), 10}, {40, page(131, 70), 10}},
		"without uptime it is a base":            {{10, page(0, 50), 0}, {25, page(0, 60), 10}, {40, page(0, 5), 5}, {55, page(0, 6), 1}},
		"its first seconds, without uptime":      {{10, page(100, 50), 0}, {25, page(0, 7), 7}, {40, page(15, 9), 2}, {55, page(30, 9), 0}},
		"and if it has overtaken by then":        {{10, page(100, 5), 0}, {25, page(0, 7), 7}, {40, page(15, 9), 2}},
		"a new target counts":                    {{10, page(100, 50), 0}, {25, page(115, 50, 4), 4}},
		"a target that went begins again": {
			{10, page(100, 50, 8), 0}, {25, page(115, 51, -1), 1}, {40, page(130, 51, 9), 9},
		},
		"one number alone is smaller": {{10, page(100, 50, 8), 0}, {25, page(115, 51, 3), 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := traffic.NewBook(start)
			for i, r := range readings {
				sum := uint64(0)
				for _, c := range book.Take(traffic.Proxy{Pod: "a"}, start.Add(time.Duration(r.seconds)*time.Second), read(t, r.page)) {
					sum += c.Values.Requests()
				}
				assert.Equal(t, r.want, sum, "reading %d", i)
			}
		})
	}
	book := traffic.NewBook(start)
	book.Take(traffic.Proxy{Cluster: "c", Pod: "a"}, start, read(t, page(100, 50)))
	book.Keep("d", func(traffic.Proxy) bool { return false })
	assert.True(t, book.Knows(traffic.Proxy{Cluster: "c", Pod: "a"}))
	book.Keep("c", func(traffic.Proxy) bool { return false })
	assert.False(t, book.Knows(traffic.Proxy{Cluster: "c", Pod: "a"}))
}

// TestOrderChangesNoSum: however the readings of several proxies are mixed, and however many there are between the first and the last, the
// sums are what the proxies counted.
func TestOrderChangesNoSum(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		book, ring := traffic.NewBook(start), traffic.NewRing(start, 1000)
		want := map[string]uint64{}
		type life struct {
			proxy   traffic.Proxy
			started int
			counts  []int
		}
		var lives []*life
		for p := range 1 + r.IntN(4) {
			lives = append(lives, &life{proxy: traffic.Proxy{Pod: fmt.Sprint(p)}, started: 20, counts: make([]int, 3)})
		}
		now := 25
		take := func(l *life) {
			flushed := (now - l.started) / 5 * 5 // the uptime is that of the last flush, if there was one
			for _, c := range book.Take(l.proxy, start.Add(time.Duration(now)*time.Second), read(t, page(flushed, l.counts...))) {
				ring.Add(start.Add(time.Duration(now)*time.Second), traffic.Key{Subset: c.Target.Host}, &c.Values)
			}
		}
		for range 40 {
			now += r.IntN(10)
			l := lives[r.IntN(len(lives))]
			switch r.IntN(4) {
			case 0: // it restarts after its last words were heard
				take(l)
				now += 10
				l.started, l.counts = now-1, make([]int, 3)
				take(l)
			case 1:
				take(l)
			default:
				at, n := r.IntN(3), r.IntN(100)
				l.counts[at] += n
				want[fmt.Sprint("a", at)] += uint64(n)
			}
		}
		for _, l := range lives {
			take(l)
		}
		got := map[string]uint64{}
		sums, _ := ring.Window(start.Add(time.Duration(now)*time.Second), traffic.Kept)
		for key, v := range sums {
			got[key.Subset] = v.Requests()
		}
		for host, n := range want {
			if n == 0 {
				delete(want, host)
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// TestNames: a host is what it is for its caller.
func TestNames(t *testing.T) {
	t.Parallel()
	state := translated()
	names := traffic.NewNames(state.Plan)
	in := map[string]*discoveryv1.Workload{}
	for _, w := range state.Plan.Workloads {
		in[w.Spec.Kubernetes.Controller.ClusterName] = w
	}
	var here, there *snapshot.DestinationPlan
	for d := range state.Plan.Destinations.All() {
		if s := d.Destination.Spec.KubeService.Ref; s.Name == enginetest.Service(1) && d.Federation != nil {
			if s.ClusterName == enginetest.Cluster(0) {
				here = d
			} else {
				there = d
			}
		}
	}
	require.NotNil(t, here)
	require.NotNil(t, there)
	require.Equal(t, here.LocalFQDN, there.LocalFQDN, "the same name in both clusters")
	caller := in[enginetest.Cluster(0)]
	from := snapshot.RefOf(snapshot.Workload, caller)
	to := func(host, subset string, port uint32) traffic.Key {
		return names.Key(caller, traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: host, Port: port, Subset: subset}})
	}
	assert.Equal(t, traffic.Key{From: from, To: here.Ref, Port: 80, Subset: "v1"}, to(here.LocalFQDN, "v1", 80))
	assert.Equal(t, traffic.Key{From: from, To: there.Ref, Port: 80}, to(there.Federation.Hostname, "", 80))
	assert.Equal(t, there.Ref, names.Key(in[enginetest.Cluster(1)], traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: here.LocalFQDN}}).To)
	for _, other := range []traffic.Key{to("example.com", "", 443), to("", "", 0), to(here.LocalFQDN, "not a label", 80), to(here.LocalFQDN, "", 70_000)} {
		assert.Equal(t, traffic.Key{From: from}, other)
	}
	assert.Equal(t, traffic.Key{To: from}, names.Key(caller, traffic.Target{Serves: true}))
}
