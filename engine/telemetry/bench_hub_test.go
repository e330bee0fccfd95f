//go:build linux

package telemetry

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/traffic"
)

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
