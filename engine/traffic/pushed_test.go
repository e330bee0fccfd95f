package traffic_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestPushed has messages of one stream, and what is known after each time.
func TestPushed(t *testing.T) {
	t.Parallel()
	const cart, host = "cluster.outbound|80|v1|cart.shop.svc.cluster.local;.", "cart.shop.svc.cluster.local:80 v1"
	type message struct {
		at      int64
		metrics []traffic.Metric
	}
	count := func(name string, n float64) traffic.Metric { return traffic.Metric{Name: name, Value: n} }
	latency := func(n uint64) traffic.Metric {
		return traffic.Metric{Name: cart + "upstream_rq_time", Count: n + 1, Buckets: map[float64]uint64{0.5: 0, 1: 0, 5: n, 10: n, 25: n, 50: n, 100: n, 250: n, 500: n, 1000: n, 2500: n, 5000: n, 10000: n, 30000: n}}
	}
	for name, tt := range map[string]struct {
		messages []message
		want     []map[string]string
	}{
		"internal and external repeat, codes too": {
			[]message{{1, []traffic.Metric{
				count(cart+"upstream_rq_2xx", 5), count(cart+"upstream_rq_200", 5), count(cart+"external.upstream_rq_2xx", 5), count(cart+"internal.upstream_rq_2xx", 5),
				count(cart+"retry.upstream_rq_5xx", 9), count(cart+"upstream_rq_completed", 5), count(cart+"upstream_rq_403", 1), count(cart+"upstream_rq_4xx", 1),
				count("cluster.xds-grpc.upstream_rq_2xx", 7), count("listener.0.0.0.0_80.http.outbound_0.0.0.0_80.downstream_rq_2xx", 5),
			}}},
			[]map[string]string{{host: "2xx 5, 4xx 1, 403 1"}},
		},
		"one time in two messages": {
			[]message{{1, []traffic.Metric{count(cart+"upstream_rq_timeout", 2)}}, {1, []traffic.Metric{count(cart+"upstream_rq_per_try_timeout", 3), count("cluster.inbound|80||;.upstream_rq_2xx", 4)}}},
			[]map[string]string{{host: "timeout 5", "serves": "2xx 4"}},
		},
		"what is left out has not changed": {
			[]message{{1, []traffic.Metric{count(cart+"upstream_rq_2xx", 5)}}, {2, []traffic.Metric{count("server.uptime", 9)}}, {3, []traffic.Metric{count(cart+"upstream_rq_2xx", 6)}}},
			[]map[string]string{{host: "2xx 5"}, {host: "2xx 5"}, {host: "2xx 6"}},
		},
		"histograms are of an interval": {
			[]message{{1, []traffic.Metric{latency(2)}}, {2, []traffic.Metric{latency(3)}}},
			[]map[string]string{{host: "<=5ms 2, more 1"}, {host: "<=5ms 5, more 2"}},
		},
		"listeners": {
			[]message{{1, []traffic.Metric{
				count("http.outbound_0.0.0.0_80.no_route", 1), count("http.admin.no_route", 50), count("http.inbound_0.0.0.0_80;.rbac.denied", 2), count("http.inbound_0.0.0.0_80;.rbac.policy.x.denied", 2),
				count("http.inbound_0.0.0.0_80;.rbac.istio_dry_run_deny_.shadow_denied", 3), count("http.inbound_0.0.0.0_80;.rbac.istio_dry_run_deny_.shadow_allowed", 4),
				count("http.inbound_0.0.0.0_80;.rbac.istio_ext_authz_.shadow_denied", 60),
			}}},
			[]map[string]string{{"serves": "denied 2, shadow_denied 3, no_route 1, shadow_allowed 4"}},
		},
		"labels, if it has them": {
			[]message{{1, []traffic.Metric{
				{Name: "cluster.upstream_rq", Labels: map[string]string{"envoy.cluster_name": "outbound|80|v1|cart.shop.svc.cluster.local;", "envoy.response_code_class": "2"}, Value: 5},
				{Name: "istiocustom.istio_requests_total", Labels: map[string]string{"reporter": "source", "destination_service": "cart.shop.svc.cluster.local", "response_code": "503"}, Value: 8},
			}}},
			[]map[string]string{{"cart.shop.svc.cluster.local:0 ": "5xx 8"}},
		},
		"names that are none": {
			[]message{{1, []traffic.Metric{
				count("cluster.;.upstream_rq_2xx", 1), count("", 1), count("cluster.", 1), count("http.", 1), count(cart+"upstream_rq_2xx", -1),
				count("cluster.outbound|80||\x1b[2J;.upstream_rq_2xx", 1), count(cart+"upstream_rq_2xx", 1e300),
			}}},
			[]map[string]string{{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := traffic.NewPushed(istioStats(t), false)
			var got []map[string]string
			add := func(r *traffic.Reading) {
				if r == nil {
					return
				}
				got = append(got, spelled(r))
			}
			for _, m := range tt.messages {
				add(book.Take(m.at, m.metrics))
			}
			add(book.Complete())
			assert.Equal(t, tt.want, got)
			require.Nil(t, book.Complete(), "nothing came since")
		})
	}
}

// TestPushedSplit: however the numbers of a time are divided into messages, and in whatever order they come, the sums are the same.
func TestPushedSplit(t *testing.T) {
	t.Parallel()
	stats := istioStats(t)
	seed := waittest.Seed(t)
	for world := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, world))
		together, apart := traffic.NewPushed(stats, false), traffic.NewPushed(stats, false)
		counts := map[string]float64{}
		for at := range int64(1 + r.IntN(5)) {
			var metrics []traffic.Metric
			for _, name := range []string{"upstream_rq_2xx", "upstream_rq_503", "upstream_rq_5xx", "upstream_rq_timeout", "upstream_cx_tx_bytes_total"} {
				for _, host := range []string{"a", "b", "c"} {
					if name := "cluster.outbound|80||" + host + ".x;." + name; r.IntN(3) > 0 {
						counts[name] += float64(r.IntN(50))
						metrics = append(metrics, traffic.Metric{Name: name, Value: counts[name]})
					}
				}
			}
			for _, host := range []string{"a", "b", "c"} {
				n := uint64(r.IntN(9))
				metrics = append(metrics, traffic.Metric{Name: "cluster.outbound|80||" + host + ".x;.upstream_rq_time", Count: n, Buckets: map[float64]uint64{1: n / 2, 5: n}})
			}
			first := together.Take(at, metrics)
			r.Shuffle(len(metrics), func(i, j int) { metrics[i], metrics[j] = metrics[j], metrics[i] })
			var before []*traffic.Reading
			for len(metrics) > 0 {
				n := 1 + r.IntN(len(metrics))
				if done := apart.Take(at, metrics[:n]); done != nil {
					before = append(before, done)
				}
				metrics = metrics[n:]
			}
			if first == nil {
				require.Empty(t, before, "seed %d, world %d", seed, world)
				continue
			}
			require.Len(t, before, 1, "seed %d, world %d", seed, world)
			require.Equal(t, spelled(first), spelled(before[0]), "seed %d, world %d", seed, world)
		}
		require.Equal(t, spelled(together.Complete()), spelled(apart.Complete()), "seed %d, world %d", seed, world)
	}
}

// spelled are the numbers of a reading by their target.
func spelled(r *traffic.Reading) map[string]string {
	r.Uptime = 0
	of := map[string]string{}
	for _, c := range traffic.NewBook(start).Take(traffic.Proxy{Pod: "a"}, start.Add(traffic.Point), r) {
		of[nameOf(c.Target)] = spell(&c.Values)
	}
	return of
}

func nameOf(t traffic.Target) string { return name(t) }

// TestPushedBounds: no message makes more targets than a page may.
func TestPushedBounds(t *testing.T) {
	t.Parallel()
	book := traffic.NewPushed(istioStats(t), false)
	for i := range 3 {
		var metrics []traffic.Metric
		for n := range traffic.MaxTargets {
			metrics = append(metrics, traffic.Metric{Name: "cluster.outbound|80||" + string(rune('a'+i)) + string(rune(0x4e00+n)) + ".x;.upstream_rq_2xx", Value: 1})
		}
		book.Take(int64(i), metrics)
	}
	r := book.Complete()
	assert.LessOrEqual(t, r.Size(), traffic.MaxTargets+1)
	assert.True(t, r.Overflow)
}
