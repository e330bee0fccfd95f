package hub

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/accesslog"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// ledger notes what it is given, and takes as long as it is held.
type ledger struct {
	mu      sync.Mutex
	taken   []traffic.Proxy
	logs    []telemetry.SentLogs
	dropped map[string]uint64
	hold    chan struct{}
}

func (l *ledger) Wanted(cluster string) traffic.Door {
	if cluster == "west" {
		return traffic.Agent
	}
	return traffic.Off
}

func (l *ledger) Take(cluster string, s *telemetry.Sent) {
	if l.hold != nil {
		<-l.hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Proxy.Cluster = cluster
	l.taken = append(l.taken, s.Proxy)
}

func (l *ledger) Lost(cluster, incarnation string, lost telemetry.Lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped[cluster+" "+incarnation] = lost.Dropped
}

func (l *ledger) pods() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.taken {
		out = append(out, p.Cluster+"/"+p.Namespace+"/"+p.Pod)
	}
	return out
}

// tell begins a stream of Telemetry.
func tell(t *testing.T, client relayv1.RelayClient, uid string) (grpc.BidiStreamingClient[relayv1.Telling, relayv1.Wanted], *relayv1.Wanted, error) {
	t.Helper()
	in, err := client.Telemetry(t.Context())
	require.NoError(t, err)
	said := hello(uid)
	said.Incarnation = "one"
	require.NoError(t, in.Send(&relayv1.Telling{Hello: said}))
	first, err := in.Recv()
	return in, first, err
}

func reading(pod string) *relayv1.Telling {
	return &relayv1.Telling{Dropped: 3, Reading: relay.ReadingOf(&telemetry.Sent{Proxy: traffic.Proxy{Cluster: "east", Namespace: "a", Pod: pod}, Reason: traffic.Failed})}
}

// TestReadingsAreOfTheCallersCluster: an agent tells of its own cluster, whatever it says; nobody else is heard, and of two streams the last one is.
func TestReadingsAreOfTheCallersCluster(t *testing.T) {
	t.Parallel()
	h, client := serving(t)
	_, _, err := tell(t, client, "west")
	assert.Equal(t, codes.Unimplemented, status.Code(err), "a hub that takes none says so")
	l := &ledger{dropped: map[string]uint64{}}
	h.options.Readings = l
	_, _, err = tell(t, client, "west2")
	assert.Equal(t, codes.Unauthenticated, status.Code(err))
	before, first, err := tell(t, client, "west")
	require.NoError(t, err)
	assert.True(t, first.GetWanted())
	assert.Equal(t, "plane", first.GetHello().GetPlaneUid())
	require.NoError(t, before.Send(reading("one")))
	waittest.Until(t, "the reading is taken", func() bool { return len(l.pods()) == 1 })
	after, _, err := tell(t, client, "west")
	require.NoError(t, err)
	_, err = before.Recv()
	assert.Equal(t, codes.Aborted, status.Code(err), "another stream takes its place")
	require.NoError(t, after.Send(reading("two")))
	waittest.Until(t, "the next reading is taken", func() bool { return len(l.pods()) == 2 })
	assert.Equal(t, []string{"west/a/one", "west/a/two"}, l.pods())
	assert.Equal(t, map[string]uint64{"west one": 3}, l.dropped)
}

// TestReadingsDelayNothing: while no reading is taken, and as many are sent as the connection takes, the agent reports as before.
func TestReadingsDelayNothing(t *testing.T) {
	t.Parallel()
	h, client := serving(t)
	l := &ledger{dropped: map[string]uint64{}, hold: make(chan struct{})}
	h.options.Readings = l
	in, _, err := tell(t, client, "west")
	require.NoError(t, err)
	full := make(chan struct{})
	go func() {
		defer close(full)
		for range 10_000 {
			if in.Send(reading("one")) != nil {
				return
			}
		}
	}()
	for range 3 {
		stream, err := report(t.Context(), client, hello("west"))
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
	}
	close(l.hold)
	select {
	case <-full:
	case <-time.After(waittest.Limit()):
		t.Fatal("the readings are not taken any more")
	}
}

func (l *ledger) Records(cluster string) []telemetry.LogRecord {
	return []telemetry.LogRecord{{Name: "of." + cluster, Spec: &observabilityv1.AccessLogRecordSpec{}}}
}

func (l *ledger) TakeLogs(cluster, _ string, s *telemetry.SentLogs) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Proxy.Cluster = cluster
	l.logs = append(l.logs, *s)
}

// TestLogsAreOfTheCallersCluster: an agent is told of the records of its own cluster, once, and what it says of logs is of its cluster.
func TestLogsAreOfTheCallersCluster(t *testing.T) {
	t.Parallel()
	h, client := serving(t)
	l := &ledger{dropped: map[string]uint64{}}
	h.options.Readings = l
	in, first, err := tell(t, client, "west")
	require.NoError(t, err)
	assert.True(t, first.GetRecorded())
	require.Len(t, first.GetRecords(), 1)
	assert.Equal(t, "of.west", first.GetRecords()[0].GetName().GetName())
	require.NoError(t, in.Send(&relayv1.Telling{Logged: relay.LoggedOf(&telemetry.SentLogs{
		Proxy: traffic.Proxy{Cluster: "east", Namespace: "a", Pod: "b", Created: 3}, Open: true, Dropped: 4, Entries: []*accesslog.Entry{{Pod: "b"}},
	})}))
	logs := func() []telemetry.SentLogs {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.logs
	}
	waittest.Until(t, "the log is taken", func() bool { return len(logs()) == 1 })
	assert.Equal(t, telemetry.SentLogs{
		Proxy: traffic.Proxy{Cluster: "west", Namespace: "a", Pod: "b", Created: 3}, Open: true, Dropped: 4, Entries: []*accesslog.Entry{{Pod: "b"}},
	}, logs()[0])
	beat, err := in.Recv()
	require.NoError(t, err)
	assert.NotNil(t, beat.GetBeat())
	assert.False(t, beat.GetRecorded(), "what has not changed is not said again")
}
