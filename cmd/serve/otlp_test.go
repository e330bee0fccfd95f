package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// collector is who gets metrics by OTLP.
type collector struct {
	*httptest.Server
	got chan *collectorpb.ExportMetricsServiceRequest
	// authorization is that of the last request.
	authorization string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{got: make(chan *collectorpb.ExportMetricsServiceRequest, 1000)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		message := &collectorpb.ExportMetricsServiceRequest{}
		if err = errors.Join(err, proto.Unmarshal(body, message)); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		c.authorization = r.Header.Get("Authorization")
		c.got <- message
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func attributes(of []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range of {
		out[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

// TestExport: what is served as metrics is sent, too, at the end as well; the environment says to whom and with what.
func TestExport(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20one")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	export, err := exporter(t.Context(), "v1.2.3", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NotNil(t, export)

	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "meshctl_traffic_requests_total", Help: "Requests."}, []string{"cluster"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "meshctl_seconds", Buckets: []float64{1, 2}})
	registry.MustRegister(requests, took)
	requests.WithLabelValues("west").Add(17)
	took.Observe(1.5)

	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { export(ctx, "host_1", registry) })
	<-c.got
	first := <-c.got
	requests.WithLabelValues("west").Add(5)
	end()
	running.Wait()
	close(c.got)
	last := first
	for message := range c.got {
		last = message
	}
	assert.Equal(t, "Bearer one", c.authorization)
	for want, message := range map[float64]*collectorpb.ExportMetricsServiceRequest{17: first, 22: last} {
		require.Len(t, message.GetResourceMetrics(), 1)
		of := message.GetResourceMetrics()[0]
		has := attributes(of.GetResource().GetAttributes())
		for name, value := range map[string]string{
			"service.name": "meshctl", "service.version": "v1.2.3", "service.instance.id": "host_1", "deployment.environment.name": "test",
		} {
			assert.Equal(t, value, has[name], "%s of %v", name, slices.Collect(maps.Keys(has)))
		}
		names := map[string]bool{}
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				names[m.GetName()] = true
				switch m.GetName() {
				case "meshctl_traffic_requests_total":
					require.True(t, m.GetSum().GetIsMonotonic())
					require.Len(t, m.GetSum().GetDataPoints(), 1)
					point := m.GetSum().GetDataPoints()[0]
					assert.InDelta(t, want, point.GetAsDouble(), 0)
					assert.Equal(t, map[string]string{"cluster": "west"}, attributes(point.GetAttributes()))
				case "meshctl_seconds":
					assert.Equal(t, []uint64{0, 1, 0}, m.GetHistogram().GetDataPoints()[0].GetBucketCounts())
				}
			}
		}
		assert.Equal(t, map[string]bool{"meshctl_traffic_requests_total": true, "meshctl_seconds": true}, names)
	}
}

// TestExportFails: who does not answer is named, with no secret, and delays nothing for long.
func TestExportFails(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refuses.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refuses.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
	said := &text{}
	export, err := exporter(t.Context(), "v1.2.3", slog.New(slog.NewTextHandler(said, nil)))
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	end()
	export(ctx, "host_1", prometheus.NewRegistry())
	assert.Contains(t, said.String(), "the last metrics were not sent by OTLP")
	assert.Contains(t, said.String(), "to="+refuses.URL)
	assert.Contains(t, said.String(), "403")
	assert.NotContains(t, said.String(), "secret")
}

// text is written by several goroutines.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *text) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *text) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ environment, want, wantErr string }{
		{"", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector:4318/base", "https://collector:4318/base", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://b", "http://b", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_SDK_DISABLED=True", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "http://a", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf", "http://a", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": metrics are sent by http/protobuf only`},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318", "", "OTEL_EXPORTER_OTLP_ENDPOINT: want http://HOST:PORT"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://", "", "want http://HOST:PORT"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=unix:///socket", "", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: want http://HOST:PORT"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:secret@b", "", "credentials belong into OTEL_EXPORTER_OTLP_HEADERS"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:secret@b:x", "", "it is no URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a?token=secret", "", "query or fragment"},
	} {
		environment := map[string]string{}
		for _, field := range strings.Fields(c.environment) {
			name, value, _ := strings.Cut(field, "=")
			environment[name] = value
		}
		got, err := receiver(func(name string) string { return environment[name] })
		if c.wantErr != "" {
			require.ErrorContains(t, err, c.wantErr, c.environment)
			require.NotContains(t, err.Error(), "secret")
			continue
		}
		require.NoError(t, err, c.environment)
		assert.Equal(t, c.want, got, c.environment)
	}
}
