package telemetry

import (
	"context"
	"crypto/tls"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/traffic"
)

// recordedLog is what a real Envoy sent of six requests, as web-1 of shop.
func recordedLog(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../accesslog/testdata/envoy-1.40.0.bin")
	require.NoError(t, err)
	return text
}

// dialLogs begins a stream of access logs with a certificate.
func (p *pushing) dialLogs(t *testing.T, certificates ...tls.Certificate) grpc.ClientStream {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.address, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{Certificates: certificates, InsecureSkipVerify: true})))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	t.Cleanup(cancel)
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs")
	if err != nil {
		return failed{err: err}
	}
	return out
}

// nextLogs waits until something is said of a log.
func (p *pushing) nextLogs(t *testing.T) *SentLogs {
	t.Helper()
	for {
		if s, more := p.local.Logs.Next(); more {
			return s
		}
		select {
		case <-p.local.Signal():
		case <-time.After(waittest.Limit()):
			require.Fail(t, "nothing was said")
		}
	}
}

// failures is an AccessLogRecord of requests that failed, with a header.
func failuresRecord(namespace string) LogRecord {
	return LogRecord{Name: "failures.gloo-mesh", Spec: &observabilityv1.AccessLogRecordSpec{
		WorkloadSelectors: []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Namespaces: []string{namespace}}}},
		Filters:           []observabilityv1.AccessLogFilter{{StatusCodeMatcher: &observabilityv1.StatusCodeMatcher{Value: 500, Comparator: observabilityv1.ComparatorGE}}},
	}}
}

func paths(entries []*accesslog.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.HTTP.Request.Path)
	}
	return strings.Join(out, " ")
}

// TestLogs: of what a real Envoy sent, what a record wants is kept until it is sent on, and nothing else.
func TestLogs(t *testing.T) {
	t.Parallel()
	p := newPushing(t, "10.0.0.1")
	p.local.Logs.Want([]LogRecord{failuresRecord("shop"), {Name: "others.gloo-mesh", Spec: failuresRecord("other").Spec}})
	stream := p.dialLogs(t, p.ca.give(t, webID))
	message := recordedLog(t)
	require.NoError(t, stream.SendMsg(&message))
	web := traffic.Proxy{Cluster: "west", Namespace: "shop", Pod: "web-1", Created: meshed("", "", "", "").CreationTimestamp.Unix()}
	opened := p.nextLogs(t)
	assert.Equal(t, &SentLogs{Proxy: web, Open: true}, opened)
	got := p.nextLogs(t)
	web.Cluster = "" // the hub knows it
	assert.Equal(t, web, got.Proxy)
	assert.Equal(t, "/broken /nowhere /refused", paths(got.Entries))
	assert.Equal(t, []string{"failures.gloo-mesh"}, got.Entries[0].Records)
	assert.Equal(t, "web-1", got.Entries[0].Pod)
	_, more := p.local.Logs.Next()
	assert.False(t, more)

	// Who is new is told of all streams, and an end is told.
	p.local.Logs.Begin()
	assert.True(t, p.nextLogs(t).Open)
	require.NoError(t, stream.CloseSend())
	ended := p.nextLogs(t)
	assert.False(t, ended.Open)
	assert.Equal(t, "web-1", ended.Proxy.Pod)
}

// TestLogsWithoutRecords: nothing is kept that no record wants.
func TestLogsWithoutRecords(t *testing.T) {
	t.Parallel()
	p := newPushing(t, "10.0.0.1")
	logs := p.local.Logs
	pod, err := p.local.podAt(netip.MustParseAddr("10.0.0.1"))
	require.NoError(t, err)
	entries := func() []accesslog.HTTP {
		m, err := accesslog.Read(recordedLog(t))
		require.NoError(t, err)
		return m.HTTP
	}
	logs.take(pod, nil, entries())
	_, more := logs.Next()
	assert.False(t, more)
	logs.Want([]LogRecord{failuresRecord("shop"), {Name: "bad.gloo-mesh", Spec: &observabilityv1.AccessLogRecordSpec{IncludedRequestHeaders: []string{"cookie"}}}})
	logs.take(pod, nil, entries())
	logs.Want(nil) // what was kept goes with the record
	_, more = logs.Next()
	assert.False(t, more)
	byLabel := failuresRecord("shop")
	byLabel.Spec.WorkloadSelectors[0].KubeWorkloadMatcher.Labels = map[string]string{"app": "web"}
	logs.Want([]LogRecord{byLabel})
	logs.take(pod, map[string]string{"app": "cart"}, entries())
	_, more = logs.Next()
	assert.False(t, more)
	logs.take(pod, map[string]string{"app": "web", "x": "y"}, entries())
	got, more := logs.Next()
	require.True(t, more)
	assert.Len(t, got.Entries, 3)
}

// TestLogsOfAnother: who reports for another pod is refused, as with numbers.
func TestLogsOfAnother(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ from, identity, want string }{
		"another account":                 {"10.0.0.1", "spiffe://cluster.local/ns/shop/sa/cart", "its certificate has the identity"},
		"a pod of the same account":       {"10.0.0.6", webID, "a proxy reports its own numbers only"},
		"from the address of another pod": {"10.0.0.2", webID, "its certificate has the identity"},
		"from no pod":                     {"10.0.0.5", webID, "no pod with a proxy has this address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPushing(t, tt.from)
			p.local.Logs.Want([]LogRecord{failuresRecord("shop")})
			stream := p.dialLogs(t, p.ca.give(t, tt.identity))
			message := recordedLog(t)
			_ = stream.SendMsg(&message) // the answer says what became of it
			var answer []byte
			err := stream.RecvMsg(&answer)
			assert.Equal(t, codes.PermissionDenied, status.Code(err), err)
			require.ErrorContains(t, err, tt.want)
			_, more := p.local.Logs.Next()
			assert.False(t, more, "nothing of it counts")
			assert.Equal(t, uint64(1), p.push.Refused())
		})
	}
}

// TestLogsMessages: what is no message ends the stream, and no more.
func TestLogsMessages(t *testing.T) {
	t.Parallel()
	p := newPushing(t, "10.0.0.1")
	stream := p.dialLogs(t, p.ca.give(t, webID))
	message := []byte("\xff\xff")
	_ = stream.SendMsg(&message)
	var answer []byte
	require.ErrorContains(t, stream.RecvMsg(&answer), "none of Envoy's access log service")
}
