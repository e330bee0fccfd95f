//go:build linux

package telemetry

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// hubSide is a meshctl serve of whose proxies agents have said something in all of the last 15 minutes.
type hubSide struct {
	of       *Telemetry
	registry *prometheus.Registry
	// said is what agents said of the proxies last, and at when that was.
	said []*Sent
	at   time.Time
}

// each is what comes of an edge in one point: counters of measures, and latencies from the third bucket on.
var each = []struct {
	measure snapshot.Measure
	n       uint64
}{{snapshot.Answered2xx, 1200}, {snapshot.Answered5xx, 3}, {snapshot.Retried, 4}, {snapshot.SentBytes, 1 << 20}, {snapshot.ReceivedBytes, 1 << 22}}

var latencies = []uint64{900, 200, 94, 9}

// newHubSide has the proxies of so many clusters with 100 workloads each. A workload calls 17 services of its cluster and 2 of the next one, and is called.
func newHubSide(b *testing.B, clusters int) *hubSide {
	b.Helper()
	const services = 100
	in := enginetest.World(enginetest.Size{Services: services, Clusters: clusters, FederateEvery: 1})
	for _, c := range in.Clusters {
		c.Relay = &snapshot.Relay{}
	}
	state := engine.Translate(in)
	local, federated := map[string]string{}, map[string]string{}
	name := func(cluster, service int) string {
		return enginetest.Cluster(cluster%clusters) + "/" + enginetest.Service(service%services)
	}
	for d := range state.Plan.Destinations.All() {
		at := d.Destination.Spec.KubeService.Ref
		local[at.ClusterName+"/"+at.Name] = d.LocalFQDN
		if d.Federation != nil {
			federated[at.ClusterName+"/"+at.Name] = d.Federation.Hostname
		}
	}
	h := &hubSide{of: &Telemetry{}, registry: prometheus.NewRegistry(), at: time.Now().Add(-traffic.Kept - traffic.Point)}
	survey, byCluster := traffic.Look(state), map[string][]*traffic.Pod{}
	for i := range survey.Pods {
		pod := &survey.Pods[i]
		byCluster[pod.Proxy.Cluster] = append(byCluster[pod.Proxy.Cluster], pod)
		var cluster, service int
		if _, err := fmt.Sscanf(pod.Proxy.Cluster+" "+pod.Workload.Spec.Kubernetes.Controller.Name, "cluster-%d service-%d", &cluster, &service); err != nil {
			continue // a gateway
		}
		said := &Sent{Proxy: pod.Proxy, Parts: &traffic.Parts{Uptime: time.Hour, Counts: true, Clusters: []traffic.Part{newPart(traffic.Target{Serves: true})}}}
		for n := range 19 {
			host := local[name(cluster-1, service+n)]
			if n >= 17 {
				host = federated[name(cluster, service+n)]
			}
			require.NotEmpty(b, host)
			said.Parts.Clusters = append(said.Parts.Clusters, newPart(traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: host, Port: 8080}}))
		}
		h.said = append(h.said, said)
	}
	term := newTerm(Options{State: func() *snapshot.State { return state }, Log: slog.New(slog.DiscardHandler)}, h.at)
	require.NoError(b, term.register(h.registry))
	h.of.current.Store(term)
	term.begin(h.at, state, survey.Entrances, byCluster)
	return h
}

func newPart(of traffic.Target) traffic.Part {
	out := traffic.Part{Target: of, Latency: make([]uint64, len(traffic.Bounds)+1)}
	for _, came := range each {
		out.Measures, out.Values = append(out.Measures, uint32(came.measure)), append(out.Values, 0)
	}
	return out
}

// round has agents say something of all proxies, a point after the round before.
func (h *hubSide) round() {
	h.at = h.at.Add(traffic.Point)
	for _, s := range h.said {
		s.Parts.Started = h.at.Add(-s.Parts.Uptime)
		for i := range s.Parts.Clusters {
			part := &s.Parts.Clusters[i]
			for n, came := range each {
				part.Values[n] += came.n + uint64(i)
			}
			for n, came := range latencies {
				part.Latency[2+n] += came
			}
		}
		h.of.current.Load().take(h.at, s)
	}
}

// counting counts what is answered, and forgets it.
type counting struct {
	header       http.Header
	bytes, lines int
}

// Header implements http.ResponseWriter.
func (c *counting) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (*counting) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (c *counting) Write(text []byte) (int, error) {
	c.bytes, c.lines = c.bytes+len(text), c.lines+bytes.Count(text, []byte("\n"))
	return len(text), nil
}

// BenchmarkHub is what a meshctl serve keeps of as many edges as there may be and 15 minutes, and how long its pages take. It should be below 100 MB,
// 1 s for /metrics of 100,000 time series, and 200 ms for a report of `meshctl top`. An operation of readings is all that agents say in 15 seconds.
// MB-heap is what is kept, and MB the most resident memory while all pages were asked for; both are beside those of a process that has counted nothing.
func BenchmarkHub(b *testing.B) {
	h := newHubSide(b, 10)
	empty, _ := Live()
	debug.FreeOSMemory()
	before, most := Resident(b), 0.0
	for range traffic.Kept/traffic.Point + 1 {
		h.round()
	}
	heap, _ := Live()
	edges := h.of.current.Load().ring.Edges()
	require.Equal(b, traffic.MaxEdges, edges)
	require.Zero(b, h.of.current.Load().ring.Folded())
	pages := func(name string, handler http.Handler, query string, header http.Header) {
		b.Run(fmt.Sprintf("edges=%d/%s", edges, name), func(b *testing.B) {
			size, cpu := 0, CPUSeconds(b)
			for b.Loop() {
				r, w := httptest.NewRequest(http.MethodGet, query, nil), &counting{header: http.Header{}}
				r.Header = header
				handler.ServeHTTP(w, r)
				most, size = max(most, Resident(b)), w.bytes
			}
			b.ReportMetric((CPUSeconds(b)-cpu)*1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(size), "B/answer")
		})
	}
	for _, by := range []traffic.By{traffic.ByDestination, traffic.ByWorkload, traffic.ByEdge, traffic.ByAll} {
		pages("top="+string(by), h.of, Path+"?by="+string(by), nil)
	}
	metrics := promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{})
	all := &counting{header: http.Header{}}
	metrics.ServeHTTP(all, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	pages(fmt.Sprintf("metrics/series=%d", all.lines), metrics, "/metrics", http.Header{"Accept-Encoding": {"gzip"}})
	b.Run(fmt.Sprintf("edges=%d/readings", edges), func(b *testing.B) {
		for b.Loop() {
			h.round()
			most = max(most, Resident(b))
		}
		b.ReportMetric((most-before)/1e6, "MB")
		b.ReportMetric((heap-empty)/1e6, "MB-heap")
		b.ReportMetric((heap-empty)/float64(edges), "B/edge")
	})
}
