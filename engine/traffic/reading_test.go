package traffic_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// start is when tests begin: at the begin of a point.
var start = time.Unix(1_800_000_000, 0)

// istioStats are how Istio's proxies count.
func istioStats(t testing.TB) *snapshot.ProxyStats {
	t.Helper()
	for _, m := range translated().Plan.Meshes {
		if m.Dialect.Proxies != nil && m.Dialect.Proxies.Stats != nil {
			return m.Dialect.Proxies.Stats
		}
	}
	require.Fail(t, "no mesh counts")
	return nil
}

// read reads a text, which has to be one.
func read(t testing.TB, text string) *traffic.Reading {
	t.Helper()
	r, err := traffic.Read([]byte(text), istioStats(t))
	require.NoError(t, err)
	return r
}

// counted are the numbers of a proxy that started after the book began, as text by target.
func counted(t testing.TB, texts ...string) map[string]string {
	t.Helper()
	book, out := traffic.NewBook(start), map[string]string{}
	sums := map[traffic.Target]*traffic.Values{}
	for i, text := range texts {
		for _, c := range book.Take(traffic.Proxy{Pod: "a"}, start.Add(time.Duration(i)*traffic.Point+time.Minute), read(t, fmt.Sprintf("envoy_server_uptime{} %d\n", 30+15*i)+text)) {
			if sums[c.Target] == nil {
				sums[c.Target] = &traffic.Values{}
			}
			sums[c.Target].Add(&c.Values)
		}
	}
	for target, v := range sums {
		out[name(target)] = spell(v)
	}
	return out
}

func name(t traffic.Target) string {
	if t.Serves {
		return "serves"
	}
	return fmt.Sprintf("%s:%d %s", t.Host, t.Port, t.Subset)
}

// spell writes numbers that are not 0.
func spell(v *traffic.Values) string {
	var parts []string
	for m := range snapshot.Latency {
		if n := v.Of(m); n != 0 {
			parts = append(parts, fmt.Sprint(m, " ", n))
		}
	}
	for i, n := range v.Latency() {
		if n != 0 {
			bound := "more"
			if i < len(traffic.Bounds) {
				bound = fmt.Sprint("<=", traffic.Bounds[i], "ms")
			}
			parts = append(parts, fmt.Sprint(bound, " ", n))
		}
	}
	return strings.Join(parts, ", ")
}

// TestRead has what the proxies of the kinds of installation say.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want map[string]string
	}{
		"tags of Istio's configuration": {`# TYPE envoy_cluster_upstream_rq counter
envoy_cluster_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code="200"} 35
envoy_cluster_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code_class="2xx"} 35
envoy_cluster_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code_class="4xx"} 6
envoy_cluster_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code="403"} 5
envoy_cluster_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code_class="5xx"} 4
envoy_cluster_internal_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code_class="2xx"} 35
envoy_cluster_external_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code_class="2xx"} 35
envoy_cluster_retry_upstream_rq{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",response_code_class="5xx"} 7
envoy_cluster_upstream_rq_completed{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 39
envoy_cluster_upstream_rq_retry{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 7
envoy_cluster_upstream_rq_timeout{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 1
envoy_cluster_upstream_rq_per_try_timeout{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 1
envoy_cluster_upstream_rq_rx_reset{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 3
envoy_cluster_upstream_rq_pending_overflow{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 4
envoy_cluster_upstream_cx_connect_fail{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 5
envoy_cluster_upstream_cx_none_healthy{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 6
envoy_cluster_ssl_fail_verify_san{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local"} 8
envoy_cluster_upstream_rq_time_bucket{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",le="0.5"} 1
envoy_cluster_upstream_rq_time_bucket{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",le="1"} 2
envoy_cluster_upstream_rq_time_bucket{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",le="5"} 2
envoy_cluster_upstream_rq_time_bucket{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",le="10"} 30
envoy_cluster_upstream_rq_time_bucket{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",le="60000"} 38
envoy_cluster_upstream_rq_time_bucket{cluster_name="outbound|9080|v1|cart.shop.svc.cluster.local",le="+Inf"} 39
envoy_cluster_upstream_rq{cluster_name="inbound|9080||",response_code_class="2xx"} 12
envoy_http_rbac{authz_enforce_result="allowed",http_conn_manager_prefix="inbound_0.0.0.0_9080"} 12
envoy_http_rbac{authz_enforce_result="denied",http_conn_manager_prefix="inbound_0.0.0.0_9080"} 3
envoy_http_rbac{authz_dry_run_action="deny",authz_dry_run_result="denied",http_conn_manager_prefix="inbound_0.0.0.0_9080"} 2
envoy_http_rbac{authz_dry_run_action="allow",authz_dry_run_result="allowed",http_conn_manager_prefix="inbound_0.0.0.0_9080"} 5
envoy_http_rbac_istio_ext_authz_{authz_dry_run_result="denied",http_conn_manager_prefix="inbound_0.0.0.0_9080"} 7
envoy_http_no_route{http_conn_manager_prefix="outbound_0.0.0.0_9080"} 9
envoy_http_stats_no_route{} 100
envoy_cluster_upstream_rq{cluster_name="xds-grpc",response_code_class="2xx"} 1
envoy_cluster_upstream_cx_total{cluster_name="outbound_.9080_._.cart.shop.svc.cluster.local"} 40
envoy_cluster_upstream_cx_total{cluster_name="PassthroughCluster"} 2
`, map[string]string{
			"cart.shop.svc.cluster.local:9080 v1": "2xx 35, 4xx 6, 5xx 4, retries 7, timeout 2, reset 3, overflow 4, connect 5, no_healthy 6, tls 8, 403 5, <=1ms 2, <=10ms 28, more 9",
			"serves":                              "2xx 12, allowed 12, denied 3, shadow_denied 2, no_route 9, shadow_allowed 5",
			":0 ":                                 "connections 2",
		}},
		"Envoy's own tags": {`envoy_cluster_upstream_rq_xx{envoy_response_code_class="2",envoy_cluster_name="outbound|80||a.b.svc.cluster.local;"} 3 1800000000000
envoy_cluster_upstream_rq{envoy_response_code="200",envoy_cluster_name="outbound|80||a.b.svc.cluster.local;"} 3
envoy_cluster_upstream_rq_xx{envoy_response_code_class="4",envoy_cluster_name="outbound|80||a.b.svc.cluster.local;"} 2
envoy_cluster_upstream_rq{envoy_response_code="403",envoy_cluster_name="outbound|80||a.b.svc.cluster.local;"} 2
envoy_http_rbac_denied{envoy_http_conn_manager_prefix="inbound"} 1
`, map[string]string{"a.b.svc.cluster.local:80 ": "2xx 3, 4xx 2, 403 2", "serves": "denied 1"}},
		"Istio's own proxy takes the place of its clusters": {`istio_build{component="proxy",tag="1.31.1"} 1
istio_requests_total{reporter="source",destination_service="a.b.svc.cluster.local",response_code="200",response_flags="-"} 5
istio_requests_total{reporter="source",destination_service="a.b.svc.cluster.local",response_code="503",response_flags="UF,URX"} 2
istio_requests_total{reporter="source",destination_service="a.b.svc.cluster.local",response_code="403",response_flags="-"} 3
istio_requests_total{reporter="source",destination_service="a.b.svc.cluster.local",response_code="200",grpc_response_status="7",response_flags="-"} 4
istio_requests_total{reporter="source",destination_service="a.b.svc.cluster.local",response_code="0",response_flags="DC"} 1
istio_requests_total{reporter="destination",destination_service="c.b.svc.cluster.local",response_code="200",response_flags="-"} 9
istio_requests_total{reporter="waypoint",destination_service="c.b.svc.cluster.local",response_code="200",response_flags="-"} 9
istio_request_duration_milliseconds_bucket{reporter="source",destination_service="a.b.svc.cluster.local",response_code="200",le="1"} 4
istio_request_duration_milliseconds_bucket{reporter="source",destination_service="a.b.svc.cluster.local",response_code="200",le="+Inf"} 5
istio_request_duration_milliseconds_bucket{reporter="source",destination_service="a.b.svc.cluster.local",response_code="503",le="1"} 2
istio_request_duration_milliseconds_bucket{reporter="source",destination_service="a.b.svc.cluster.local",response_code="503",le="+Inf"} 2
istio_tcp_sent_bytes_total{reporter="source",destination_service="a.b.svc.cluster.local"} 70
istio_tcp_received_bytes_total{reporter="source",destination_service="a.b.svc.cluster.local"} 60
istio_tcp_connections_opened_total{reporter="source",destination_service="a.b.svc.cluster.local"} 2
envoy_cluster_upstream_rq{cluster_name="outbound|80||a.b.svc.cluster.local",response_code_class="2xx"} 5
envoy_http_rbac{authz_enforce_result="denied",http_conn_manager_prefix="inbound_0.0.0.0_9080"} 3
`, map[string]string{
			"a.b.svc.cluster.local:0 ": "2xx 9, 4xx 3, 5xx 2, none 1, connect 2, connections 2, sent_bytes 60, received_bytes 70, 403 7, <=1ms 6, more 1",
			"serves":                   "2xx 9, denied 3",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, counted(t, tt.text))
		})
	}
}

// TestClustersStayClusters: a proxy whose clusters were counted at first is not counted twice when its own numbers come.
func TestClustersStayClusters(t *testing.T) {
	t.Parallel()
	clusters := `envoy_cluster_upstream_rq{cluster_name="outbound|80||a.b.svc.cluster.local",response_code_class="2xx"} %d` + "\n"
	own := `istio_requests_total{reporter="source",destination_service="a.b.svc.cluster.local",response_code="200",response_flags="-"} %d` + "\n"
	assert.Equal(t, map[string]string{"a.b.svc.cluster.local:80 ": "2xx 7"}, counted(t, fmt.Sprintf(clusters, 5), fmt.Sprintf(clusters+own, 7, 7)))
	assert.Equal(t, map[string]string{"a.b.svc.cluster.local:0 ": "2xx 7"}, counted(t, fmt.Sprintf(own, 5), fmt.Sprintf(clusters+own, 7, 7)))
}

// TestCounts tells a proxy without requests from one that counts none.
func TestCounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"envoy_server_uptime{} 4\n": false,
		"":                          false,
		`envoy_cluster_ssl_connection_error{cluster_name="outbound|80||a.b.svc.cluster.local"} 0`:                        true,
		`envoy_cluster_upstream_rq{cluster_name="xds-grpc",response_code_class="2xx"} 1` + "\nenvoy_server_uptime{} 4\n": false,
		`istio_build{component="proxy",tag="1.31.1"} 1`:                                                                  true,
	} {
		assert.Equal(t, want, read(t, text).Counts(), text)
	}
	_, err := traffic.Read([]byte("<html>no statistics</html>"), istioStats(t))
	require.ErrorContains(t, err, "want statistics")
}

// TestAltered: numbers without a label that says what they are of are no numbers. Without response_code, all would have failed.
func TestAltered(t *testing.T) {
	t.Parallel()
	all := []string{`reporter="source"`, `destination_service="a.b.svc.cluster.local"`, `response_code="200"`, `response_flags="-"`}
	for without, want := range map[string]string{"": "", "reporter": "reporter", "destination_service": "destination_service", "response_code": "response_code", "response_flags": ""} {
		labels := slices.DeleteFunc(slices.Clone(all), func(l string) bool { return without != "" && strings.HasPrefix(l, without+"=") })
		text := fmt.Sprintf("istio_requests_total{%s} 3\n", strings.Join(labels, ","))
		_, err := traffic.Read([]byte(text), istioStats(t))
		g := traffic.NewGathered([]*traffic.Pod{{Proxy: traffic.Proxy{Namespace: "b", Pod: "a"}, Stats: istioStats(t)}}, start)
		series := map[string]string{"namespace": "b", "pod": "a"}
		for _, label := range labels {
			name, value, _ := strings.Cut(label, "=")
			series[name] = strings.Trim(value, `"`)
		}
		g.Take("istio_requests_total", series, 3)
		gathered := g.Reading(traffic.Proxy{Namespace: "b", Pod: "a"}).Err()
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, gathered)
			continue
		}
		require.ErrorContains(t, err, "its metrics have no label "+want)
		assert.Equal(t, traffic.Altered, traffic.ReasonOf(err))
		assert.Equal(t, err, gathered)
	}
	// What a workload gets needs no name of what is called.
	require.NoError(t, read(t, `istio_requests_total{reporter="destination",response_code="200"} 3`+"\n").Err())
	assert.Equal(t, traffic.Failed, traffic.ReasonOf(errors.New("no route to host")))
}

// TestWhatIsNotTrusted: lines that are no numbers, or could do harm, are left out and counted.
func TestWhatIsNotTrusted(t *testing.T) {
	t.Parallel()
	line := func(cluster, value string) string {
		return fmt.Sprintf("envoy_cluster_upstream_rq{response_code_class=\"2xx\",cluster_name=\"%s\"} %s\n", cluster, value)
	}
	good := "envoy_server_uptime{} 4\n" + line("outbound|80||a.b.svc.cluster.local", "3")
	for name, bad := range map[string]string{
		"a terminal's escape": line("outbound|80||a\x1b[2J", "1"), "a new line": line(`outbound|80||a\nb`, "1"), "no UTF-8": line("outbound|80||a\xff", "1"),
		"not a number": line("outbound|80||a", "NaN"), "negative": line("outbound|80||a", "-1"), "too large": line("outbound|80||a", "1e300"), "infinite": line("outbound|80||a", "+Inf"),
		"no value": "envoy_cluster_upstream_rq{} \n", "no end": `envoy_cluster_upstream_rq{cluster_name="a` + "\n", "ends with a backslash": `envoy_cluster_upstream_rq{cluster_name="a\` + "\n",
		"a long label": line("outbound|80||"+strings.Repeat("a", 600), "1"), "a long line": line(strings.Repeat("a", 20_000), "1"),
		"many labels": "envoy_cluster_upstream_rq{" + strings.Repeat(`a="b",`, 50) + "} 1\n",
	} {
		r := read(t, good+bad)
		assert.Equal(t, 1, r.Refused, name)
		came := traffic.NewBook(start).Take(traffic.Proxy{}, start.Add(time.Minute), r)
		require.Len(t, came, 1, name)
		assert.Equal(t, uint64(3), came[0].Values.Requests(), name)
	}
	var many strings.Builder
	many.WriteString(good)
	for i := range 3 * traffic.MaxTargets {
		many.WriteString(line(fmt.Sprintf("outbound|80||a%d", i), "1"))
	}
	r := read(t, many.String())
	assert.True(t, r.Overflow)
	sum := traffic.Values{}
	came := traffic.NewBook(start).Take(traffic.Proxy{}, start.Add(time.Minute), r)
	for _, c := range came {
		sum.Add(&c.Values)
	}
	assert.Len(t, came, traffic.MaxTargets+1)
	assert.Equal(t, uint64(3*traffic.MaxTargets+3), sum.Requests(), "none is lost")
}

// FuzzRead: no text ends the process, names what is not printed, or counts more than it says.
func FuzzRead(f *testing.F) {
	f.Add([]byte("# HELP\nenvoy_cluster_upstream_rq{cluster_name=\"outbound|80|v1|a.b\",response_code_class=\"2xx\"} 3 1\nenvoy_server_uptime{} 4\n"))
	f.Add([]byte(`istio_requests_total{reporter="source",destination_service="a\"\\b",response_code="200"} 1e3`))
	f.Add([]byte("envoy_http_rbac{authz_enforce_result=\"denied\",http_conn_manager_prefix=\"x\"} 1\r\n"))
	names := istioStats(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := traffic.Read(text, names)
		if err != nil {
			return
		}
		again, err := traffic.Read(text, names)
		require.NoError(t, err)
		book := traffic.NewBook(start)
		came := book.Take(traffic.Proxy{}, start.Add(time.Minute), r)
		assert.LessOrEqual(t, len(came), traffic.MaxTargets+2)
		assert.Empty(t, book.Take(traffic.Proxy{}, start.Add(time.Minute), again), "the same text adds nothing")
		for _, c := range came {
			assert.NotContains(t, c.Target.Host+c.Target.Subset, "\x1b")
			assert.NotContains(t, c.Target.Host+c.Target.Subset, "\n")
		}
	})
}

// translated is a small world, translated.
var translated = sync.OnceValue(func() *snapshot.State { return engine.Translate(world()) })
