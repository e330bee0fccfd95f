package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// fleet answers for the API servers of the clusters of a small world.
type fleet struct {
	state *snapshot.State
	mu    sync.Mutex
	// requests are what each pod has sent to service-00001, at port 80; began is when the proxies started.
	requests int
	began    time.Time
	// fault is what happens instead of an answer, and refused are the clusters where nothing may be read.
	fault   func(pod string) error
	refused map[string]bool
	// idle: proxies count nothing, and say so on no page.
	idle bool
	// own is what proxies count by themselves, in place of their clusters.
	own func(pod string) string
	// most is how many were read at a time.
	now, most int
}

func newFleet() *fleet {
	return &fleet{state: engine.Translate(enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1})), refused: map[string]bool{}, began: time.Now()}
}

func (f *fleet) options(registry prometheus.Registerer) Options {
	return Options{
		State: f.translated, Metrics: registry, Log: slog.New(slog.DiscardHandler),
		Clusters: sync.OnceValue(func() map[string]*rest.Config {
			return map[string]*rest.Config{enginetest.Cluster(0): {Host: enginetest.Cluster(0)}, enginetest.Cluster(1): {Host: enginetest.Cluster(1)}}
		}),
		get: f.get, account: func(context.Context, *rest.Config) string { return "system:serviceaccount:a:b" }, allowed: func(_ context.Context, config *rest.Config) (bool, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return !f.refused[config.Host], nil
		},
	}
}

// translated is the latest translation.
func (f *fleet) translated() *snapshot.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fleet) get(ctx context.Context, _ *rest.Config, _, pod string, port uint32, _ string, _ int64) ([]byte, error) {
	f.mu.Lock()
	f.now++
	f.most = max(f.most, f.now)
	fault, requests, idle, own := f.fault, f.requests, f.idle, f.own
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.now--; f.mu.Unlock() }()
	if port != 15090 {
		return nil, fmt.Errorf("port %d", port)
	}
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fault != nil {
		if err := fault(pod); err != nil {
			return nil, err
		}
	}
	text := fmt.Sprintf("envoy_server_uptime{} %d\n", int(time.Since(f.began).Seconds()))
	if own != nil {
		return []byte(text + own(pod)), nil
	}
	if !idle {
		host := fmt.Sprintf("%s.%s.svc.cluster.local", enginetest.Service(1), enginetest.Namespace(1))
		text += fmt.Sprintf("envoy_cluster_upstream_rq{cluster_name=\"outbound|80||%s\",response_code_class=\"2xx\"} %d\n", host, requests)
	}
	return []byte(text), nil
}

// set changes what the proxies say.
func (f *fleet) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// ask asks the page.
func ask(t *testing.T, of *Telemetry, query string) (*traffic.Report, int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	of.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+query, nil))
	report := &traffic.Report{}
	if w.Code == http.StatusOK {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), report))
	}
	return report, w.Code, w.Body.String()
}

// running runs a Telemetry on a fleet, in a bubble of its own clock.
func running(t *testing.T, test func(t *testing.T, f *fleet, of *Telemetry, registry *prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, of, registry := newFleet(), &Telemetry{}, prometheus.NewRegistry()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		time.Sleep(time.Minute) // the proxies were there before
		go func() { ended <- of.Run(ctx, f.options(registry)) }()
		time.Sleep(14 * time.Second)
		test(t, f, of, registry)
		cancel()
		require.NoError(t, <-ended)
		_, code, text := ask(t, of, "")
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Contains(t, text, "does not lead")
	})
}

func rows(r *traffic.Report) map[string]string {
	out := map[string]string{}
	for i := range r.Rows {
		row := &r.Rows[i]
		out[row.To.Cluster+"/"+row.To.Name] = strings.TrimSpace(fmt.Sprintf("%s %d %s", row.State, row.Requests, string(row.Reason)))
	}
	return out
}

// TestRounds: what came since the first reading is counted once, in the round after it.
func TestRounds(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, f *fleet, of *Telemetry, registry *prometheus.Registry) {
		t.Helper()
		report, _, _ := ask(t, of, "?by=destinations")
		assert.Equal(t, report.Proxies, report.Read)
		require.Positive(t, report.Proxies)
		pods := uint64(report.Proxies)
		assert.Equal(t, "no traffic 0", rows(report)["cluster-01/service-00001"])
		f.set(func() { f.requests = 5 })
		time.Sleep(20 * time.Second)
		report, _, _ = ask(t, of, "?by=destinations")
		both := rows(report)
		assert.Equal(t, fmt.Sprintf("numbers %d", 5*pods/2), both["cluster-01/service-00001"])
		assert.Equal(t, fmt.Sprintf("numbers %d", 5*pods/2), both["cluster-02/service-00001"])
		assert.Equal(t, "no traffic 0", both["cluster-01/service-00000"])
		time.Sleep(time.Minute)
		again, _, _ := ask(t, of, "?by=destinations")
		assert.Equal(t, both, rows(again))
		assert.LessOrEqual(t, f.most, 2*atOnce)
		families, err := registry.Gather()
		require.NoError(t, err)
		sums := map[string]float64{}
		for _, family := range families {
			for _, m := range family.Metric {
				sums[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		assert.InDelta(t, float64(5*pods), sums["meshctl_requests_total"], 0)
		assert.InDelta(t, float64(pods), sums["meshctl_telemetry_proxies"], 0)
	})
}

// TestNewNames: a service that is there only since the round began is counted as itself by what is read in it.
func TestNewNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, of := newFleet(), &Telemetry{}
		after := f.state
		f.state = engine.Translate(enginetest.World(enginetest.Size{Services: 1, Clusters: 2, FederateEvery: 1}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- of.Run(ctx, f.options(prometheus.NewRegistry())) }()
		time.Sleep(14 * time.Second)
		// The edit and the first requests come while the second round is at its proxies.
		f.set(func() {
			f.fault = func(string) error {
				f.set(func() { f.state, f.requests = after, 5 })
				return nil
			}
		})
		time.Sleep(15 * time.Second)
		report, _, _ := ask(t, of, "?by=edges")
		// Each cluster had one pod before the edit.
		assert.Equal(t, map[string]string{"cluster-01/service-00001": "numbers 5", "cluster-02/service-00001": "numbers 5"}, rows(report))
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestWhatIsNotRead has no data, with the reason, and no zero.
func TestWhatIsNotRead(t *testing.T) {
	t.Parallel()
	running(t, func(t *testing.T, f *fleet, of *Telemetry, _ *prometheus.Registry) {
		t.Helper()
		f.set(func() {
			f.refused[enginetest.Cluster(1)] = true
			f.fault = func(pod string) error {
				if strings.HasPrefix(pod, enginetest.Service(0)) {
					return errors.New("connection refused")
				}
				return nil
			}
		})
		time.Sleep(2 * time.Minute)
		report, _, _ := ask(t, of, "?by=workloads")
		got := rows(report)
		assert.Equal(t, "no data 0 FAILED", got["cluster-01/service-00000"])
		assert.Equal(t, "no traffic 0", got["cluster-01/service-00001"])
		assert.Equal(t, "no data 0 NOT_ALLOWED", got["cluster-02/service-00001"])
		report, _, _ = ask(t, of, "?by=destinations")
		assert.Equal(t, "no traffic 0 FAILED", rows(report)["cluster-01/service-00001"], "of those who may call it, some were read")
		f.set(func() { f.refused, f.fault = map[string]bool{}, nil })
		time.Sleep(2 * time.Minute)
		report, _, _ = ask(t, of, "?by=workloads")
		assert.Equal(t, "no traffic 0", rows(report)["cluster-02/service-00001"])
	})
}

// TestProxiesThatCountNothing are told from those without requests.
func TestProxiesThatCountNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, of := newFleet(), &Telemetry{}
		f.idle = true
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- of.Run(ctx, f.options(prometheus.NewRegistry())) }()
		time.Sleep(10 * time.Second)
		report, _, _ := ask(t, of, "?by=workloads")
		assert.Equal(t, "no data 0 NOT_COUNTED", rows(report)["cluster-01/service-00001"])
		f.set(func() { f.idle = false })
		time.Sleep(20 * time.Second)
		report, _, _ = ask(t, of, "?by=workloads")
		assert.Equal(t, "no traffic 0", rows(report)["cluster-01/service-00001"])
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestQueries: a parameter that is none is refused, and says what it may be.
func TestQueries(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{"?by=pods": "want destinations", "?window=1h": "from 30s to 15m", "?window=x": "want a duration", "?sort=x": "want one of worst"} {
		_, code, text := ask(t, &Telemetry{}, query)
		assert.Equal(t, http.StatusBadRequest, code)
		assert.Contains(t, text, want)
	}
	q := traffic.Query{By: traffic.ByEdge, Window: time.Minute, From: "a", To: "b", Cluster: "c", Namespace: "d", Sort: "rps"}
	got, err := parseQuery(Parameters(q))
	require.NoError(t, err)
	assert.Equal(t, q, got)
}

// TestSeriesAreBounded: edges lose their subset first, and then their source, and no request.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for subsets, level := range map[int]int{10: 0, 2000: 1} {
		term := newTerm(Options{}, now)
		term.ring = traffic.NewRing(now, 1_000_000)
		for from := range 60 {
			for subset := range subsets {
				term.ring.Add(now, traffic.Key{
					From: snapshot.Ref{Kind: snapshot.Workload, Name: fmt.Sprint("from", from)}, To: snapshot.Ref{Kind: snapshot.Destination, Name: "to"}, Subset: fmt.Sprint("v", subset),
				}, &traffic.Values{snapshot.Answered2xx: 1})
			}
		}
		byEdge, got := term.series()
		assert.Equal(t, level, got)
		sum := uint64(0)
		for _, v := range byEdge {
			sum += v.Requests()
		}
		assert.Equal(t, uint64(60*subsets), sum)
		assert.LessOrEqual(t, len(byEdge), maxSeries)
	}
}
