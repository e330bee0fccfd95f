package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/traffic"
)

// post asks a question of the REST API.
func post(t *testing.T, of *Telemetry, path, question string, answer any) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	of.REST()[strings.Split(path, "?")[0]].ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(question)))
	if w.Code == http.StatusOK && answer != nil {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), answer))
	}
	return w.Code, w.Body.String()
}

type nodesAnswer struct {
	Nodes []traffic.NodeSeries `json:"nodeMetrics"`
}

type edgesAnswer struct {
	Edges []traffic.EdgeSeries `json:"edgeMetrics"`
}

func total(counts []uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// TestREST: numbers of workloads and pairs of them are those of a report, and each in the sample in which it came.
func TestREST(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, f *fleet, of *Telemetry, _ *prometheus.Registry) {
		t.Helper()
		f.set(func() { f.requests = 5 })
		time.Sleep(time.Minute)
		f.set(func() { f.requests = 12 })
		time.Sleep(30 * time.Second)
		report, _, _ := ask(t, of, "?by=edges&window=5m")
		want, sources := uint64(0), map[string]uint64{}
		for i := range report.Rows {
			row := &report.Rows[i]
			want += row.Requests
			sources[row.From.Name+"."+row.From.Cluster] += row.Requests
		}
		require.Positive(t, want)

		for name, steps := range map[string]int{`{"window":"300s"}`: 1, `{"window":"300s","step":"15s"}`: 20, `{"window":"5m","step":"60s"}`: 5, ``: 1} {
			var nodes nodesAnswer
			code, text := post(t, of, NodesPath, name, &nodes)
			require.Equal(t, http.StatusOK, code, text)
			require.Len(t, nodes.Nodes, len(f.state.Plan.Workloads))
			samples := 0
			for i := range nodes.Nodes {
				n := &nodes.Nodes[i]
				assert.Equal(t, sources[n.Workload.Name+"."+n.Workload.ClusterName], total(n.Outgoing.Requests), "%s %v", name, n.Workload)
				assert.Zero(t, total(n.Outgoing.Failures))
				assert.Len(t, n.Outgoing.Times, len(n.Outgoing.Requests))
				assert.Len(t, n.Outgoing.Latencies, len(n.Outgoing.Requests))
				assert.LessOrEqual(t, len(n.Outgoing.Times), steps)
				samples = max(samples, len(n.Outgoing.Times))
				if len(n.Outgoing.Times) > 0 {
					assert.WithinDuration(t, time.Now(), n.Outgoing.Times[len(n.Outgoing.Times)-1], traffic.Point)
				}
				if steps == 20 && total(n.Outgoing.Requests) > 0 {
					apart := 0
					for _, count := range n.Outgoing.Requests {
						if count > 0 {
							apart++
						}
					}
					assert.Equal(t, 2, apart, "%v", n.Outgoing.Requests)
				}
			}
			assert.Positive(t, samples)

			var edges edgesAnswer
			code, text = post(t, of, EdgesPath, name, &edges)
			require.Equal(t, http.StatusOK, code, text)
			got := uint64(0)
			for i := range edges.Edges {
				e := &edges.Edges[i]
				got += total(e.Metrics.Requests)
				assert.Equal(t, total(e.Metrics.Requests), total(e.Metrics.Successes))
				require.NotNil(t, e.Target, "one workload is behind each service")
				assert.Equal(t, e.Service.ClusterName, e.Target.ClusterName)
				assert.Equal(t, []commonv1.ClusterObjectRef{*e.Target}, e.Targets)
			}
			assert.Equal(t, want, got, name)
		}

		first := f.state.Plan.Workloads[0].Spec.Kubernetes.Controller
		ref := fmt.Sprintf(`{"name":%q,"namespace":%q,"clusterName":%q}`, first.Name, first.Namespace, first.ClusterName)
		var nodes nodesAnswer
		_, _ = post(t, of, NodesPath, `{"nodeSelectors":[{"workloadRef":`+ref+`}]}`, &nodes)
		require.Len(t, nodes.Nodes, 1)
		assert.Equal(t, first, nodes.Nodes[0].Workload)
		nodes = nodesAnswer{}
		_, _ = post(t, of, NodesPath, `{"nodeSelectors":[{"workloadSelector":{"kubeWorkloadMatcher":{"clusters":["cluster-02"]}}}]}`, &nodes)
		require.NotEmpty(t, nodes.Nodes)
		for i := range nodes.Nodes {
			assert.Equal(t, "cluster-02", nodes.Nodes[i].Workload.ClusterName)
		}
		var edges edgesAnswer
		_, _ = post(t, of, EdgesPath, `{"edgeSelectors":[{"source":{"workloadSelector":{"kubeWorkloadMatcher":{"clusters":["cluster-01"]}}},"target":{"workloadSelector":{}}}]}`, &edges)
		require.NotEmpty(t, edges.Edges)
		for i := range edges.Edges {
			assert.Equal(t, "cluster-01", edges.Edges[i].Source.ClusterName)
		}
		edges = edgesAnswer{}
		_, text := post(t, of, EdgesPath, `{"edgeSelectors":[{"target":{"workloadRef":{"name":"nobody"}}}]}`, &edges)
		assert.JSONEq(t, `{"edgeMetrics":[]}`, text)

	})
}

// TestRESTRefuses questions that cannot be answered, and says why.
func TestRESTRefuses(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, _ *fleet, of *Telemetry, _ *prometheus.Registry) {
		t.Helper()
		now := time.Now()
		for question, want := range map[string]string{
			`{"window":"1s"}`:                  "window: 1s; want 15s to 15m0s",
			`{"window":"60s","step":"20s"}`:    "step: 20s; want a multiple of 15s",
			`{"window":"60s","step":"120s"}`:   "at most the window of 1m0s",
			`{"window":60}`:                    `a duration has to be a string such as "300s"`,
			`{"window":"soon"}`:                `want a number and its unit`,
			`{"times":"2020-01-01T00:00:00Z"}`: "times",
			`[`:                                "no JSON of this path",
			`{"time":"` + now.Add(time.Hour).Format(time.RFC3339) + `"}`:  "is in the future",
			`{"time":"` + now.Add(-time.Hour).Format(time.RFC3339) + `"}`: "numbers are kept for 15m0s",
		} {
			code, text := post(t, of, NodesPath, question, nil)
			assert.Equal(t, http.StatusBadRequest, code, question)
			assert.Contains(t, text, want, question)
		}
		code, _ := post(t, of, NodesPath, `{"window":"`+strings.Repeat("1", maxQuestion)+`s"}`, nil)
		assert.Equal(t, http.StatusBadRequest, code)
	})
	for _, path := range []string{NodesPath, EdgesPath, EntriesPath} {
		code, text := post(t, &Telemetry{}, path, "", nil)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Contains(t, text, "does not lead")
	}
}

// TestNoDataIsNoZero: what was not read has no samples.
func TestNoDataIsNoZero(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, f *fleet, of *Telemetry, _ *prometheus.Registry) {
		t.Helper()
		f.set(func() { f.fault = func(string) error { return fmt.Errorf("no route to it") } })
		time.Sleep(5 * time.Minute)
		var nodes nodesAnswer
		_, _ = post(t, of, NodesPath, `{"window":"60s"}`, &nodes)
		require.NotEmpty(t, nodes.Nodes)
		for i := range nodes.Nodes {
			n := &nodes.Nodes[i]
			assert.Equal(t, traffic.NoData, n.State, n.Workload.Name)
			assert.NotEmpty(t, n.Reason)
			assert.Empty(t, n.Outgoing.Times)
			assert.Empty(t, n.Incoming.Requests)
		}
	})
}

// TestRESTOfLogs: the last ten entries, of the workloads that are selected, and with watch those that come.
func TestRESTOfLogs(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, f *fleet, of *Telemetry, _ *prometheus.Registry) {
		t.Helper()
		logs := of.current.Load().logs
		add := func(i int) {
			k := f.state.Plan.Workloads[i%2].Spec.Kubernetes
			e := &accesslog.Entry{WorkloadRef: k.Controller}
			e.HTTP.Request.Path = fmt.Sprint("/", i)
			logs.mu.Lock()
			defer logs.mu.Unlock()
			logs.ring.Add(k.Controller.Name, e)
		}
		for i := range 30 {
			add(i)
		}
		type line struct {
			Result  accesslog.Entry `json:"result"`
			LeftOut uint64          `json:"leftOut"`
		}
		left := map[string]uint64{}
		paths := func(from io.Reader) (out []string) {
			for d := json.NewDecoder(from); ; {
				var l line
				if err := d.Decode(&l); err != nil {
					require.ErrorIs(t, err, io.EOF)
					return out
				}
				out = append(out, l.Result.HTTP.Request.Path)
				if l.LeftOut > 0 {
					left[l.Result.HTTP.Request.Path] = l.LeftOut
				}
			}
		}
		_, text := post(t, of, EntriesPath, "", nil)
		assert.Equal(t, []string{"/20", "/21", "/22", "/23", "/24", "/25", "/26", "/27", "/28", "/29"}, paths(strings.NewReader(text)))
		first := f.state.Plan.Workloads[0].Spec.Kubernetes.Controller
		question := fmt.Sprintf(`{"workloadSelectors":[{"kubeWorkloadMatcher":{"namespaces":[%q],"clusters":[%q]}}]}`, first.Namespace, first.ClusterName)
		other := f.state.Plan.Workloads[1].Spec.Kubernetes.Controller
		require.NotEqual(t, [2]string{first.Namespace, first.ClusterName}, [2]string{other.Namespace, other.ClusterName}, "a selector tells them apart")
		_, text = post(t, of, EntriesPath+"?pretty", question, nil)
		assert.Equal(t, []string{"/10", "/12", "/14", "/16", "/18", "/20", "/22", "/24", "/26", "/28"}, paths(strings.NewReader(text)))

		ctx, cancel := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			of.REST()[EntriesPath].ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, EntriesPath+"?watch=1", strings.NewReader(question)))
		}()
		time.Sleep(10 * time.Second)
		add(30)
		add(31)
		add(32)
		time.Sleep(10 * time.Second)
		// More than are kept come at once.
		for i := 100; i < 100+2*(accesslog.PerKey+7); i += 2 {
			add(i)
		}
		time.Sleep(10 * time.Second)
		cancel()
		<-ended
		got := paths(w.Body)
		require.Len(t, got, 12+accesslog.PerKey)
		assert.Equal(t, map[string]uint64{"/114": 7}, left)
		assert.Equal(t, []string{"/10", "/12", "/14", "/16", "/18", "/20", "/22", "/24", "/26", "/28", "/30", "/32"}, got[:12])
	})
}
