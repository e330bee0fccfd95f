package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/accesslog"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestLogsPass as they are, but for their cluster, which the hub knows; and so do records.
func TestLogsPass(t *testing.T) {
	t.Parallel()
	e := &accesslog.Entry{Pod: "b", Records: []string{"r.gloo-mesh"}}
	e.HTTP.Common = accesslog.Common{StartTime: time.Unix(1234, 5000).UTC(), Took: "0.001000s", Flags: []string{"UF"}, UpstreamRemoteAddress: &accesslog.Address{SocketAddress: accesslog.SocketAddress{Address: "10.0.0.1", PortValue: 80}}}
	e.HTTP.Request = accesslog.Request{RequestMethod: "GET", Path: "/a?b=(redacted)", Headers: map[string]string{"x-user": "ada"}}
	e.HTTP.Response = accesslog.Response{ResponseCode: 503, Trailers: map[string]string{"grpc-status": "0"}}
	s := &telemetry.SentLogs{Proxy: traffic.Proxy{Namespace: "a", Pod: "b", Created: 7}, Open: true, Dropped: 3, Entries: []*accesslog.Entry{e}}
	text, err := proto.Marshal(LoggedOf(s))
	require.NoError(t, err)
	got := &relayv1.Logged{}
	require.NoError(t, proto.Unmarshal(text, got))
	assert.Equal(t, s, SentLogsOf(got))

	records := []telemetry.LogRecord{{Name: "r.gloo-mesh", Spec: &observabilityv1.AccessLogRecordSpec{IncludedRequestHeaders: []string{"x-user"}}}}
	assert.Equal(t, records, WantedLogsOf(LogRecordsOf(records)))
}

// TestLogsAreBounded: what is too large, too much, or no entry is left out by who takes it.
func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	large := &accesslog.Entry{Pod: strings.Repeat("a", maxEntry)}
	assert.Empty(t, LoggedOf(&telemetry.SentLogs{Entries: []*accesslog.Entry{large}}).GetEntries())
	l := &relayv1.Logged{Entries: [][]byte{[]byte("{"), []byte("[]"), []byte(`{"pod":"` + strings.Repeat("a", maxEntry) + `"}`)}}
	assert.Empty(t, SentLogsOf(l).Entries)
	for range 2 * maxEntries {
		l.Entries = append(l.Entries, []byte(`{"pod":"a"}`))
	}
	assert.Len(t, SentLogsOf(l).Entries, maxEntries-3)
	assert.Empty(t, SentLogsOf(nil).Proxy.Pod)
	many := make([]*relayv1.LogRecord, 2*accesslog.MaxRecords)
	for i := range many {
		many[i] = &relayv1.LogRecord{Spec: []byte("{}")}
	}
	assert.Len(t, WantedLogsOf(many), accesslog.MaxRecords)
	assert.Empty(t, WantedLogsOf([]*relayv1.LogRecord{{Spec: []byte("x")}}))
}
