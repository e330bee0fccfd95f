package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestEntrances: what the KubernetesCluster asks for counts, if it is possible; else how the cluster is reached does.
func TestEntrances(t *testing.T) {
	t.Parallel()
	source := &multiclusterv1alpha1.PrometheusSource{Url: "https://prometheus.example"}
	for name, c := range map[string]struct {
		relayed bool
		asked   *multiclusterv1alpha1.Telemetry
		door    traffic.Door
		closed  bool
	}{
		"dialled":               {false, nil, traffic.Scrape, false},
		"by relay":              {true, nil, traffic.Agent, false},
		"disabled":              {true, &multiclusterv1alpha1.Telemetry{Door: "none"}, traffic.Off, false},
		"a Prometheus":          {true, &multiclusterv1alpha1.Telemetry{Door: "prometheus", Prometheus: source}, traffic.Prometheus, false},
		"a Prometheus of none":  {false, &multiclusterv1alpha1.Telemetry{Door: "prometheus"}, traffic.Prometheus, true},
		"an agent, if dialled":  {false, &multiclusterv1alpha1.Telemetry{Door: "agent"}, traffic.Agent, true},
		"scraping, if by relay": {true, &multiclusterv1alpha1.Telemetry{Door: "scrape"}, traffic.Scrape, true},
		"sent, by relay":        {true, &multiclusterv1alpha1.Telemetry{Door: "push"}, traffic.Push, false},
		"sent, if dialled":      {false, &multiclusterv1alpha1.Telemetry{Door: "push"}, traffic.Push, true},
		"of a later version":    {true, &multiclusterv1alpha1.Telemetry{Door: "ebpf"}, "ebpf", true},
	} {
		in := &snapshot.Input{Management: &snapshot.Management{}, Clusters: []*snapshot.Cluster{{Name: "west"}}}
		if c.relayed {
			in.Clusters[0].Relay = &snapshot.Relay{}
		}
		in.Management.KubernetesClusters = []*multiclusterv1alpha1.KubernetesCluster{{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: multiclusterv1alpha1.KubernetesClusterSpec{Telemetry: c.asked}}}
		got := traffic.Entrances(in)["west"]
		assert.Equal(t, c.door, got.Door, name)
		assert.Equal(t, c.closed, got.Closed != "", name)
	}
}

// TestLocalPods: a pod is read at its own address, and at none that another pod may answer at.
func TestLocalPods(t *testing.T) {
	t.Parallel()
	pod := func(name, address string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address}}
		p.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "istio-proxy"}}
		if change != nil {
			change(p)
		}
		return p
	}
	c := &snapshot.Cluster{Name: "west", Pods: []*corev1.Pod{
		pod("shared-2", "10.0.0.2", func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }),
		pod("own", "10.0.0.1", nil), pod("shared", "10.0.0.2", nil), pod("none", "", nil), pod("six", "fd00::1", nil),
		pod("host", "10.0.0.3", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), pod("loop", "127.0.0.1", nil), pod("link", "169.254.169.254", nil),
		pod("done", "10.0.0.1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("native", "10.0.0.4", func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers[1:], p.Spec.Containers[:1]
		}),
	}}
	var got []string
	for _, p := range traffic.LocalPods(c, engine.Dialects()) {
		assert.Equal(t, "west", p.Proxy.Cluster)
		require.NotNil(t, p.Stats)
		assert.Equal(t, uint32(15090), p.Stats.Port)
		got = append(got, fmt.Sprint(p.Proxy.Pod, " ", p.Why == ""))
	}
	assert.Equal(t, []string{"host false", "link false", "loop false", "native true", "none false", "own true", "shared false", "six true"}, got)
}

// TestParts: a reading that is taken apart and put together again has the same numbers, and what is no reading is not put together.
func TestParts(t *testing.T) {
	t.Parallel()
	text := page(100, 3, 4) + `envoy_cluster_upstream_rq{cluster_name="inbound|80||",response_code_class="5xx"} 7` + "\n" +
		`istio_requests_total{reporter="source",destination_service="b",response_code="200",response_flags="-"} 9` + "\n" +
		`istio_request_duration_milliseconds_bucket{reporter="source",destination_service="b",le="5"} 9` + "\n" +
		`envoy_http_no_route{http_conn_manager_prefix="x"} 2` + "\n"
	at := start.Add(time.Minute)
	reading := read(t, text)
	parts := reading.Parts(at)
	again, err := parts.Reading()
	require.NoError(t, err)
	assert.Equal(t, at.Add(-100*time.Second), again.Started)
	again.Started = time.Time{}
	assert.Equal(t, reading, again)
	assert.Equal(t, 4, reading.Size())

	for name, change := range map[string]func(*traffic.Parts){
		"too many targets": func(p *traffic.Parts) { p.Clusters = make([]traffic.Part, traffic.MaxTargets+2) },
		"a name that is not printed": func(p *traffic.Parts) {
			p.Owned = []traffic.Part{{Target: traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: "a\x1b[2J"}}}}
		},
		"values without measures": func(p *traffic.Parts) { p.Both.Values = []uint64{1, 2} },
		"other buckets":           func(p *traffic.Parts) { p.Both.Latency = []uint64{1, 2} },
		"a number too large":      func(p *traffic.Parts) { p.Both = traffic.Part{Measures: []uint32{0}, Values: []uint64{1<<53 + 1}} },
		"a target of what is got": func(p *traffic.Parts) {
			p.Owned = []traffic.Part{{Target: traffic.Target{Serves: true, ProxyTarget: snapshot.ProxyTarget{Host: "a"}}}}
		},
	} {
		bad := reading.Parts(at)
		change(bad)
		_, err := bad.Reading()
		assert.Error(t, err, name)
	}
	later := &traffic.Parts{Both: traffic.Part{Measures: []uint32{200}, Values: []uint64{5}}}
	_, err = later.Reading()
	require.NoError(t, err, "a measure of a later version is left out")
}

// TestMeasuresKeepTheirNumbers: agents of other versions send them.
func TestMeasuresKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	var names []string
	for m := range snapshot.Latency {
		names = append(names, m.String())
	}
	assert.Equal(t, []string{
		"1xx", "2xx", "3xx", "4xx", "5xx", "none", "retries", "timeout", "reset", "overflow", "connect", "no_healthy", "tls",
		"connections", "sent_bytes", "received_bytes", "allowed", "denied", "shadow_denied", "no_cluster", "no_route",
	}, names[:21], "add new measures before Latency, at the end")
	assert.Len(t, traffic.Bounds, 13, "other buckets need another field in the protocol of agents")
}

// TestBookOfOthers: readings that somebody else made are told apart by their own clock, which may be set.
func TestBookOfOthers(t *testing.T) {
	t.Parallel()
	type step struct {
		// at is when the reading counts, and started when the proxy started by the other clock, both in seconds; n are requests.
		at, started, n int
		unordered      bool
		want           uint64
	}
	for name, steps := range map[string][]step{
		"delays are no restarts":                         {{100, 990, 50, false, 0}, {115, 990, 60, false, 10}},
		"a restart":                                      {{100, 990, 50, false, 0}, {115, 1100, 7, false, 7}},
		"a clock that is set forward":                    {{100, 990, 50, false, 0}, {115, 1500, 60, false, 10}, {130, 1500, 61, false, 1}},
		"and then a restart":                             {{100, 990, 50, false, 0}, {115, 1500, 60, false, 10}, {130, 1600, 1, false, 1}},
		"one that started since":                         {{100, 1090, 50, false, 50}},
		"an older answer":                                {{100, 990, 50, true, 0}, {115, 990, 60, true, 10}, {130, 990, 55, true, 0}, {145, 990, 62, true, 2}},
		"an answer of the process before":                {{100, 990, 50, true, 0}, {115, 1100, 7, true, 7}, {130, 990, 50, true, 0}, {145, 1100, 8, true, 1}},
		"answers that do not say when it started":        {{100, 0, 50, true, 0}, {115, 0, 40, true, 0}, {130, 0, 51, true, 1}},
		"a restart that has overtaken: the less of both": {{100, 990, 5, false, 0}, {115, 1100, 7, false, 2}},
	} {
		book := traffic.NewBook(start)
		for i, s := range steps {
			r := read(t, page(0, s.n))
			if s.started > 0 {
				r.Started, r.Uptime = time.Unix(int64(s.started), 0), time.Duration(s.at+1000-s.started)*time.Second
			}
			r.Unordered = s.unordered
			sum := uint64(0)
			for _, c := range book.Take(traffic.Proxy{Pod: "a"}, start.Add(time.Duration(s.at)*time.Second), r) {
				sum += c.Values.Requests()
			}
			assert.Equal(t, s.want, sum, "%s: reading %d", name, i)
		}
	}
}

// TestBeginAnew: where numbers come in otherwise, what proxies have counted before is a base again, also of those that are new.
func TestBeginAnew(t *testing.T) {
	t.Parallel()
	book := traffic.NewBook(start)
	p := traffic.Proxy{Cluster: "west", Pod: "a"}
	take := func(seconds, uptime, n int) (sum uint64) {
		for _, c := range book.Take(p, start.Add(time.Duration(seconds)*time.Second), read(t, page(uptime, n))) {
			sum += c.Values.Requests()
		}
		return sum
	}
	assert.Equal(t, uint64(5), take(30, 10, 5))
	book.Begin("west", start.Add(40*time.Second))
	assert.Equal(t, uint64(0), take(45, 25, 8), "some of it was counted before, and nobody knows how much")
	assert.Equal(t, uint64(1), take(60, 40, 9))
}

// TestNothingTwiceThroughAnyDoor: whichever readings are lost, late, or of another replica, and whatever restarts and is switched in between,
// no number is less than 0, and no request is counted twice.
func TestNothingTwiceThroughAnyDoor(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		book := traffic.NewBook(start)
		p := traffic.Proxy{Cluster: "west", Pod: "a"}
		door := []traffic.Door{traffic.Scrape, traffic.Agent, traffic.Prometheus}[r.IntN(3)]
		started, counts := -100, []int{r.IntN(100), r.IntN(100)}
		made, counted, lossless := 0, uint64(0), true
		type old struct {
			started int
			counts  []int
		}
		var scraped []old // what a Prometheus has
		now := 0
		for range 60 {
			now += 5 + r.IntN(20)
			for i := range counts {
				n := r.IntN(9)
				counts[i] += n
				made += n
			}
			scraped = append(scraped, old{started, slices.Clone(counts)})
			switch r.IntN(12) {
			case 0: // it restarts, which loses what was not read
				started, counts, lossless = now, []int{0, 0}, false
				now += 31
				continue
			case 1: // lost on the way
				continue
			case 2:
				door, lossless = []traffic.Door{traffic.Scrape, traffic.Agent, traffic.Prometheus}[r.IntN(3)], false
				book.Begin("west", start.Add(time.Duration(now)*time.Second))
				continue
			}
			at := start.Add(time.Duration(now) * time.Second)
			said := old{started, counts}
			if door == traffic.Prometheus && r.IntN(3) == 0 {
				said = scraped[max(0, len(scraped)-1-r.IntN(3))] // of a replica that is behind
				lossless = false
			}
			reading := read(t, page(max(now-said.started, 1), said.counts...))
			switch door {
			case traffic.Agent: // it arrives late, which the clock of the agent does not
				reading.Started = time.Unix(int64(5000+said.started), 0)
				at = at.Add(time.Duration(r.IntN(4)) * time.Second)
			case traffic.Prometheus:
				reading.Started, reading.Unordered = time.Unix(int64(9000+said.started+r.IntN(2)), 0), true
			}
			for _, c := range book.Take(p, at, reading) {
				counted += c.Values.Requests()
			}
			require.LessOrEqual(t, counted, uint64(made), "seed %d", seed)
		}
		if lossless {
			assert.Positive(t, counted, "seed %d", seed)
		}
	}
}

// TestDoorsOfRows: each row names the doors of its numbers, each once.
func TestDoorsOfRows(t *testing.T) {
	t.Parallel()
	state := engine.Translate(world())
	names, survey := traffic.NewNames(state.Plan), traffic.Look(state)
	ring := traffic.NewRing(start, 1000)
	var from *traffic.Pod
	for i := range survey.Pods {
		if from == nil || survey.Pods[i].Proxy.Cluster == from.Proxy.Cluster {
			from = &survey.Pods[i]
		}
	}
	host := ""
	for d := range state.Plan.Destinations.All() {
		if s := d.Destination.Spec.KubeService; s != nil && s.Ref.ClusterName == from.Proxy.Cluster {
			host = d.LocalFQDN
		}
	}
	for _, door := range []traffic.Door{traffic.Scrape, traffic.Agent, traffic.Scrape} {
		key := names.Key(from.Workload, traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: host, Port: 80}})
		key.Door = door
		ring.Add(start, key, &traffic.Values{snapshot.Answered2xx: 2})
	}
	report := func(by traffic.By) (out []string) {
		for _, row := range ring.Report(start, &traffic.Context{State: state, Survey: survey}, traffic.Query{By: by, Window: traffic.Kept}).Rows {
			if row.State == traffic.HasNumbers {
				out = append(out, fmt.Sprint(row.Requests, " ", row.Doors))
			}
		}
		return out
	}
	assert.Equal(t, []string{"6 [agent scrape]"}, report(traffic.ByDestination))
	assert.Equal(t, []string{"0 [agent scrape]"}, report(traffic.ByWorkload))
	assert.Equal(t, []string{"4 [scrape]", "2 [agent]"}, report(traffic.ByEdge))
}

// TestGathered: series of a Prometheus become the readings of the pods that they name.
func TestGathered(t *testing.T) {
	t.Parallel()
	survey := traffic.Look(engine.Translate(world()))
	one, other := &survey.Pods[0], &survey.Pods[1]
	g := traffic.NewGathered([]*traffic.Pod{one, other}, start)
	labels := func(more ...string) map[string]string {
		out := map[string]string{"pod": one.Proxy.Pod, "namespace": one.Proxy.Namespace}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	g.Take(traffic.StartedSeries, labels(), float64(start.Unix()-100))
	g.Take("istio_requests_total", labels("reporter", "source", "destination_service", "b", "response_code", "503", "response_flags", "UH"), 4)
	g.Take("istio_request_duration_milliseconds_bucket", labels("reporter", "source", "destination_service", "b", "le", "5"), 1)
	g.Take("istio_request_duration_milliseconds_bucket", labels("reporter", "source", "destination_service", "b", "le", "+Inf"), 4)
	g.Take("istio_requests_total", map[string]string{"kubernetes_pod_name": one.Proxy.Pod, "kubernetes_namespace": one.Proxy.Namespace, "reporter": "destination", "response_code": "200"}, 6)
	g.Take("istio_requests_total", labels("reporter", "source", "destination_service", "\x1b"), 4)
	g.Take("istio_requests_total", map[string]string{"pod": "else", "namespace": "where"}, 4)
	g.Take("istio_requests_total", labels("reporter", "source"), -1)
	assert.Equal(t, 1, g.Unknown)
	assert.Equal(t, 2, g.Refused)
	assert.Nil(t, g.Reading(other.Proxy))
	r := g.Reading(one.Proxy)
	require.NotNil(t, r)
	assert.Equal(t, 100*time.Second, r.Uptime)
	assert.True(t, r.Counts())
	sums := map[string]string{}
	for _, p := range r.Parts(start).Owned {
		sums[fmt.Sprint(p.Serves, p.Host)] = fmt.Sprint(p.Measures, p.Values, p.Latency)
	}
	assert.Equal(t, map[string]string{"falseb": "[4 11] [4 4] [0 1 0 0 0 0 0 0 0 0 0 0 0 3]", "true": "[1] [6] []"}, sums)
}
