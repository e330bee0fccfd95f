package wire

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/traffic"
)

// countedWithin is how long it may take until requests are counted.
const countedWithin = 20 * time.Second

// seen is what meshctl serve counts.
type seen struct {
	*environment
	url string
}

// seen is what meshctl serve counts now.
func (e *environment) seen(t *testing.T) *seen {
	t.Helper()
	status, err := demo.Status(t.Context(), e.options)
	require.NoError(t, err)
	return &seen{e, "http://" + status.Metrics}
}

// ask asks for what was counted, which only the leader knows.
func (s *seen) ask(t *testing.T, by traffic.By) (*traffic.Report, error) {
	t.Helper()
	return reading.Management{Server: s.url}.Traffic(t.Context(), traffic.Query{By: by, Window: traffic.Kept})
}

// report is what was counted.
func (s *seen) report(t *testing.T, by traffic.By) *traffic.Report {
	t.Helper()
	report, err := s.ask(t, by)
	require.NoError(t, err)
	return report
}

// edges are requests by edge, subset, way and class of the answer, of all callers.
func (s *seen) edges(t *testing.T) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, row := range s.report(t, traffic.ByEdge).Rows {
		for class, n := range row.Answers {
			out[strings.Join(strings.Fields(fmt.Sprintf("%s/%s %s/%s %s %s %s", row.From.Cluster, row.From.Name, row.To.Cluster, row.To.Name, row.Subset, row.Via, class)), " ")] += n
		}
	}
	return out
}

// exported are the edges at /metrics.
func (s *seen) exported(t *testing.T) map[string]uint64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	out := map[string]uint64{}
	for _, m := range families["meshctl_requests_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		way := "local"
		if label["source_cluster"] != label["destination_cluster"] {
			way = "gateway"
		}
		out[strings.Join(strings.Fields(fmt.Sprintf("%s/%s %s/%s %s %s %s", label["source_cluster"], label["source_workload"], label["destination_cluster"],
			label["destination_service"], label["destination_subset"], way, label["response_class"])), " ")] += uint64(m.GetCounter().GetValue())
	}
	return out
}

// since are the numbers that came to those of before.
func since(before, now map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for name, n := range now {
		if n != before[name] {
			out[name] = n - before[name]
		}
	}
	return out
}

// counted: what is sent is what the proxies' numbers say, exactly, by edge, subset and class, here and in the other cluster.
func counted(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	// All proxies were read, and what requests of before is counted stands.
	waittest.NoError(t, "all proxies are read", func() error {
		if r := s.report(t, traffic.ByWorkload); r.Read != r.Proxies || r.Read == 0 {
			return fmt.Errorf("%d of %d: %+v", r.Read, r.Proxies, r.Rows)
		}
		return nil
	})
	s.settled(t)
	before, exported := s.edges(t), s.exported(t)
	denied, refused := s.denied(t, "ratings"), s.refused(t, "details", "ratings")

	want := map[string]uint64{}
	send := func(cluster, workload string, call app.Call, edge func(outcome string) string) {
		t.Helper()
		all, err := e.send(t.Context(), e.pod(t, cluster, workload), call)
		require.NoError(t, err)
		require.Equal(t, call.Count, all.total())
		for outcome, n := range all {
			want[cluster+"/"+workload+" "+edge(outcome)] += uint64(n)
		}
	}
	subsets := map[string]string{
		"cluster-1 reviews-v1": "cluster-1/reviews version-v1 local 2xx", "cluster-1 reviews-v2": "cluster-1/reviews version-v2 local 2xx",
		"cluster-2 reviews-v3": "cluster-2/reviews version-v3 gateway 2xx",
	}
	send("cluster-1", "productpage-v1", app.Call{URL: "http://reviews:9080", Count: 400}, func(outcome string) string { return subsets[outcome] })
	only := func(text string) func(string) string { return func(string) string { return text } }
	send("cluster-1", "productpage-v1", app.Call{URL: "http://details:9080", Count: 150}, only("cluster-1/details local 2xx"))
	send("cluster-1", "productpage-v1", app.Call{URL: "http://details:9080", Count: 37, Headers: fails(500, 1000)}, only("cluster-1/details local 5xx"))
	send("cluster-1", "details-v1", app.Call{URL: "http://ratings:9080", Count: 60}, only("cluster-1/ratings local 4xx"))
	send("cluster-2", "reviews-v1", app.Call{URL: "http://ratings:9080", Count: 80}, only("cluster-2/ratings local 2xx"))
	sent := time.Now()
	t.Log("sent:", want)
	require.NotContains(t, want, "cluster-1/productpage-v1 ", "each outcome has an edge")

	waittest.NoError(t, "all requests are counted", func() error {
		if got := since(before, s.edges(t)); !maps.Equal(want, got) {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
	took := time.Since(sent)
	t.Log("counted after", took)
	assert.Less(t, took, countedWithin)
	// Nothing is counted twice by the readings that follow.
	s.settled(t)
	assert.Equal(t, want, since(before, s.edges(t)))
	assert.Equal(t, want, since(exported, s.exported(t)), "what Prometheus reads")
	assert.Equal(t, uint64(60), s.denied(t, "ratings")-denied)
	assert.Equal(t, uint64(60), s.refused(t, "details", "ratings")-refused)
}

// latencies: of requests that take some time, meshctl shows no percentile more than one bucket off what their caller measured.
func latencies(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	from := e.pod(t, "cluster-1", "reviews-v2")
	edge := func() *traffic.Row {
		for _, row := range s.report(t, traffic.ByEdge).Rows {
			if row.From.Cluster == from.Cluster && row.From.Name == from.Workload {
				return &row
			}
		}
		return nil
	}
	require.Nil(t, edge(), "nobody sent requests on this edge before")
	var took []float64
	for _, c := range []struct {
		count int
		delay string
	}{{60, "60ms"}, {37, "180ms"}, {3, "700ms"}} {
		call := app.Call{URL: "http://ratings:9080", Count: c.count, Parallel: 3, TimeoutMs: 10_000, Headers: header("X-App-Delay", c.delay)}
		require.NoError(t, e.plane.Send(t.Context(), from, call, func(outcomes []app.Outcome) {
			for _, o := range outcomes {
				assert.Equal(t, 200, o.Status, o.Error)
				for _, micros := range o.Micros {
					took = append(took, float64(micros)/1000)
				}
			}
		}))
	}
	slices.Sort(took)
	waittest.NoError(t, "all requests are counted", func() error {
		if row := edge(); row == nil || row.Requests != uint64(len(took)) {
			return fmt.Errorf("want %d: %+v", len(took), row)
		}
		return nil
	})
	// Proxies count a request at once, and how long it took when they flush their statistics.
	waittest.NoError(t, "how long requests took is shown", func() error {
		row := edge()
		for name, q := range map[string]struct {
			share float64
			is    *float64
		}{"p50": {0.5, row.P50}, "p95": {0.95, row.P95}, "p99": {0.99, row.P99}} {
			measured := took[int(math.Ceil(q.share*float64(len(took))))-1]
			bucket, _ := slices.BinarySearch(traffic.Bounds[:], measured)
			if shown, known := slices.BinarySearch(traffic.Bounds[:], *q.is); !known || max(shown-bucket, bucket-shown) > 1 {
				return fmt.Errorf("%s: measured %.1f ms, shown %v ms", name, measured, *q.is)
			}
		}
		return nil
	})
}

// serveEnds kills serve while requests are sent. The new one knows nothing of before and says so, counts nothing twice, and is exact from
// then on.
func serveEnds(t *testing.T, e *environment) {
	t.Helper()
	const edge = "cluster-1/productpage-v1 cluster-1/details local 2xx"
	s := e.seen(t)
	page := e.pod(t, "cluster-1", "productpage-v1")
	l := e.stream(t, page, app.Call{URL: "http://details:9080", Rate: 30, Parallel: 5})
	before := s.edges(t)[edge]
	waittest.Until(t, "requests are counted", func() bool { return s.edges(t)[edge] > before })
	killed, answered := time.Now(), l.counts()["cluster-1 details-v1"]
	e.signalServe(t, syscall.SIGKILL)
	e.up(t)
	s = e.seen(t)
	waittest.NoError(t, "requests are counted again", func() error {
		if _, err := s.ask(t, traffic.ByEdge); err != nil {
			return err
		}
		if got := s.edges(t); got[edge] == 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	assert.Greater(t, s.report(t, traffic.ByEdge).Since, killed)
	all := l.stop()
	require.Empty(t, all.failed())
	s.settled(t)
	at := s.edges(t)[edge]
	t.Logf("%d were answered, %d of them after serve was killed; the new one counted %d", all.total(), all["cluster-1 details-v1"]-answered, at)
	assert.LessOrEqual(t, at, uint64(all["cluster-1 details-v1"]-answered))
	more, err := e.send(t.Context(), page, app.Call{URL: "http://details:9080", Count: 61})
	require.NoError(t, err)
	require.Empty(t, more.failed())
	waittest.Until(t, "all requests are counted", func() bool { return s.edges(t)[edge] == at+61 })
	s.settled(t)
	assert.Equal(t, at+61, s.edges(t)[edge])
}

// settled waits until each proxy was read twice, without a request.
func (s *seen) settled(t *testing.T) {
	t.Helper()
	began := time.Now()
	waittest.Until(t, "two rounds of readings are over", func() bool { return time.Since(began) > 2*traffic.Point+5*time.Second })
}

// denied are the requests that workloads of a name in cluster-1 refused.
func (s *seen) denied(t *testing.T, name string) (n uint64) {
	t.Helper()
	for _, row := range s.report(t, traffic.ByWorkload).Rows {
		if row.To.Cluster == "cluster-1" && strings.HasPrefix(row.To.Name, name) {
			n += row.Denied
		}
	}
	return n
}

// refused are the requests from a workload to a service that its callers saw refused.
func (s *seen) refused(t *testing.T, from, to string) (n uint64) {
	t.Helper()
	for _, row := range s.report(t, traffic.ByEdge).Rows {
		if strings.HasPrefix(row.From.Name, from) && row.To.Name == to {
			n += row.Refused
		}
	}
	return n
}

// notCounted: where nobody may read the proxies, there is no data, with the reason, and no traffic is not said.
func notCounted(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	reasons := func() map[traffic.Reason]int {
		out := map[traffic.Reason]int{}
		for _, row := range s.report(t, traffic.ByWorkload).Rows {
			if row.To.Cluster == "cluster-2" && row.State == traffic.NoData {
				out[row.Reason]++
			}
		}
		return out
	}
	require.Empty(t, reasons())
	config, err := e.clusters["cluster-1"].Config()
	require.NoError(t, err)
	_, err = reading.Management{Config: config, Namespace: "gloo-mesh"}.Traffic(t.Context(), traffic.Query{By: traffic.ByEdge, Window: traffic.Kept})
	require.ErrorContains(t, err, "runs outside of the cluster", "the leader of the Lease is no pod")
	_, err = reading.Management{Config: config, Namespace: "bookinfo"}.Traffic(t.Context(), traffic.Query{By: traffic.ByEdge, Window: traffic.Kept})
	require.ErrorContains(t, err, "Lease bookinfo/meshctl: there is none")
	client, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	require.NoError(t, client.DeleteYAML(t.Context(), []byte(readProxies)))
	t.Cleanup(func() { require.NoError(t, client.ApplyYAML(context.WithoutCancel(t.Context()), []byte(readProxies))) })
	waittest.NoError(t, "the workloads of cluster-2 have no data", func() error {
		if got := reasons(); got[traffic.NotAllowed] == 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

const readProxies = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: meshctl-read-proxies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: meshctl-read-proxies}
subjects:
- {kind: ServiceAccount, namespace: gloo-mesh, name: cluster-2}
`
