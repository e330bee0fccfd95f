package telemetry

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/traffic"
)

// saidAt is what a proxy sends of a time: how long it has been running, and how many requests to reviews were answered.
func saidAt(t testing.TB, at time.Time, seconds, requests int) []byte {
	t.Helper()
	var out []byte
	for name, n := range map[string]int{"server.uptime": seconds, "cluster.outbound|9080||reviews.bookinfo.svc.cluster.local;.upstream_rq_2xx": requests} {
		text, err := proto.Marshal(&dto.MetricFamily{
			Name: proto.String(name), Type: dto.MetricType_GAUGE.Enum(),
			Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(float64(n))}, TimestampMs: proto.Int64(at.UnixMilli())}},
		})
		require.NoError(t, err)
		out = protowire.AppendBytes(protowire.AppendTag(out, fieldMetrics, protowire.BytesType), text)
	}
	return out
}

func requestsOf(t testing.TB, s *Sent) uint64 {
	t.Helper()
	require.NotNil(t, s.Parts)
	require.Len(t, s.Parts.Clusters, 1)
	return s.Parts.Clusters[0].Values[0]
}

// TestPushOfOlder: what a proxy said last counts before what the next process of it says, and nothing that comes of it later.
func TestPushOfOlder(t *testing.T) {
	t.Parallel()
	p := newPushing(t, "10.0.0.1")
	send := func(stream grpc.ClientStream, message []byte) {
		t.Helper()
		require.NoError(t, stream.SendMsg(&message))
	}
	older := p.dial(t, p.ca.give(t, webID))
	send(older, append(from(webNode), saidAt(t, time.Now(), 100, 1000)...))
	assert.Equal(t, uint64(1000), requestsOf(t, p.next(t)))

	newer := p.dial(t, p.ca.give(t, webID))
	send(newer, append(from(webNode), saidAt(t, time.Now(), 1, 3)...))
	assert.Equal(t, uint64(3), requestsOf(t, p.next(t)))
	last := saidAt(t, time.Now().Add(time.Second), 101, 1010)
	_ = older.SendMsg(&last) // it may have been told already
	var answer []byte
	assert.Equal(t, codes.Aborted, status.Code(older.RecvMsg(&answer)))

	send(newer, saidAt(t, time.Now().Add(2*time.Second), 3, 5))
	assert.Equal(t, uint64(5), requestsOf(t, p.next(t)))
}

// TestPushOfOlderHeld: what was not passed on of an older stream is, before the first word of the newer one, and keeps the time of which it is.
func TestPushOfOlderHeld(t *testing.T) {
	t.Parallel()
	p := newPushing(t, "10.0.0.1")
	synctest.Test(t, func(t *testing.T) {
		pod, err := p.local.podAt(netip.MustParseAddr("10.0.0.1"))
		require.NoError(t, err)
		began, from := time.Now(), &sender{}
		say := func(n *numbers, seconds, requests int) {
			m := &pushed{}
			require.NoError(t, m.read(saidAt(t, time.Now(), seconds, requests)))
			n.add(time.Now(), m)
		}
		older := from.begin(p.local, pod, pause, false)
		say(older, 100, 1000)
		time.Sleep(settled)
		older.pass(time.Now(), settled)
		got, more := p.local.Next()
		require.True(t, more)
		assert.Equal(t, uint64(1000), requestsOf(t, got))
		time.Sleep(3 * time.Second)
		say(older, 103, 1010)
		time.Sleep(2 * time.Second)
		older.pass(time.Now(), settled)
		_, more = p.local.Next()
		assert.False(t, more, "it is not time yet")

		newer := from.begin(p.local, pod, pause, false)
		got, more = p.local.Next()
		require.True(t, more)
		assert.Equal(t, uint64(1010), requestsOf(t, got))
		assert.Equal(t, 2*time.Second, got.Age)
		assert.Equal(t, began.Add(3*time.Second+settled-103*time.Second).Unix(), got.Parts.Started.Unix())
		say(older, 104, 1020)
		older.pass(time.Now().Add(time.Hour), settled)
		older.end()
		say(newer, 1, 2)
		time.Sleep(time.Second)
		rest := newer.pass(time.Now(), settled)
		_, more = p.local.Next()
		assert.False(t, more, "nothing more of the older one, and of the newer one not so soon")
		time.Sleep(rest)
		newer.pass(time.Now(), settled)
		got, more = p.local.Next()
		require.True(t, more)
		assert.Equal(t, uint64(2), requestsOf(t, got))
		// One that sends all the time is passed on, too.
		for i := range 200 {
			say(newer, 20, 10+i)
			time.Sleep(100 * time.Millisecond)
			newer.pass(time.Now(), settled)
		}
		got, more = p.local.Next()
		require.True(t, more)
		assert.Greater(t, requestsOf(t, got), uint64(100))
	})
}

// TestPushUnread: who may send nothing is refused before anything of it was read.
func TestPushUnread(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ from, identity string }{"no pod": {"10.0.0.5", webID}, "another account": {"10.0.0.1", "spiffe://cluster.local/ns/shop/sa/cart"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPushing(t, tt.from)
			for _, stream := range []grpc.ClientStream{p.dial(t, p.ca.give(t, tt.identity)), p.dialLogs(t, p.ca.give(t, tt.identity))} {
				var answer []byte
				assert.Equal(t, codes.PermissionDenied, status.Code(stream.RecvMsg(&answer)))
			}
		})
	}
}

// TestPushBounds: a pod has no more streams and connections, and sends no more, than a proxy needs. What is too much is read, and not taken.
func TestPushBounds(t *testing.T) {
	t.Parallel()
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		p := newPushing(t, "10.0.0.1")
		certificate := p.ca.give(t, webID)
		answers := make(chan error, maxNumbers+1)
		for range maxNumbers + 1 {
			stream := p.dial(t, certificate)
			go func() { answers <- stream.RecvMsg(new([]byte)) }()
		}
		// Whichever begins last: the others get no answer.
		select {
		case err := <-answers:
			assert.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
		case <-time.After(waittest.Limit()):
			require.Fail(t, "none of them is refused")
		}
		assert.Equal(t, uint64(1), p.push.Refused())
	})
	t.Run("streams one after the other", func(t *testing.T) {
		t.Parallel()
		p := newPushing(t, "10.0.0.1")
		at := netip.MustParseAddr("10.0.0.1")
		for range maxOpens {
			s, err := p.push.enter(at, ofNumbers)
			require.NoError(t, err)
			p.push.leave(s, ofNumbers)
		}
		_, err := p.push.enter(at, ofNumbers)
		require.ErrorContains(t, err, "too often")
		_, err = p.push.enter(netip.MustParseAddr("10.0.0.2"), ofNumbers)
		require.NoError(t, err, "another pod has its own bounds")
	})
	t.Run("connections", func(t *testing.T) {
		t.Parallel()
		p := newPushing(t, "10.0.0.1")
		var all []net.Conn
		for range maxConnections + 1 {
			conn, err := net.Dial("tcp", p.address)
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			all = append(all, conn)
		}
		last := all[maxConnections]
		require.NoError(t, last.SetReadDeadline(time.Now().Add(waittest.Limit())))
		_, err := last.Read(make([]byte, 1))
		require.Error(t, err)
		var late net.Error
		if assert.NotErrorAs(t, err, &late, "it is closed") {
			assert.Equal(t, uint64(1), p.push.Refused())
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		p := newPushing(t, "10.0.0.1")
		stream := p.dial(t, p.ca.give(t, webID))
		first := append(from(webNode), saidAt(t, time.Now(), 1, 1)...)
		require.NoError(t, stream.SendMsg(&first))
		assert.Equal(t, uint64(1), requestsOf(t, p.next(t)))
		// A field that nobody knows, as large as a message may be.
		large := protowire.AppendBytes(protowire.AppendTag(nil, 9, protowire.BytesType), make([]byte, maxMessage-100))
		for range 4 {
			require.NoError(t, stream.SendMsg(&large))
		}
		require.Eventually(t, func() bool { return p.local.Dropped() > 0 }, waittest.Limit(), 10*time.Millisecond)
		require.Eventually(t, func() bool {
			again := saidAt(t, time.Now(), 2, 7)
			require.NoError(t, stream.SendMsg(&again))
			s, more := p.local.Next()
			return more && s.Parts != nil && len(s.Parts.Clusters) == 1 && requestsOf(t, s) == 7
		}, waittest.Limit(), 10*time.Millisecond, "the stream goes on")
	})
	t.Run("senders", func(t *testing.T) {
		t.Parallel()
		p := newPushing(t, "10.0.0.1")
		for i := range 2 * maxSenders {
			from := p.push.connect(&net.TCPAddr{IP: net.IPv4(10, 1, byte(i>>8), byte(i)), Port: 1})
			require.NotNil(t, from)
			p.push.disconnect(from)
		}
		p.push.mu.Lock()
		defer p.push.mu.Unlock()
		assert.LessOrEqual(t, len(p.push.senders), maxSenders)
	})
}

// TestPushSeldom: a proxy that sends once a minute, as seldom as Istio lets it, and gets no request has no traffic, all the time; one that
// sends nothing has no data.
func TestPushSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, of := newFleet(), &Telemetry{}
		west := enginetest.Cluster(0)
		f.by(t, true, &multiclusterv1alpha1.Telemetry{Door: multiclusterv1alpha1.TelemetryDoorPush})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- of.Run(ctx, f.options(prometheus.NewRegistry())) }()
		time.Sleep(time.Second)
		pods := f.podsOf()
		quiet := pods[len(pods)-1]
		books := map[*traffic.Pod]*traffic.Pushed{}
		for _, pod := range pods {
			books[pod] = traffic.NewPushed(pod.Stats, true)
		}
		for minute := range 5 {
			for _, pod := range pods {
				if pod == quiet {
					continue
				}
				books[pod].Take(int64(minute), []traffic.Metric{{Name: "server.uptime", Value: float64(60 * minute)}})
				of.Take(west, &Sent{Proxy: pod.Proxy, Parts: books[pod].Complete().Parts(time.Now())})
			}
			for range 6 {
				time.Sleep(10 * time.Second)
				report, _, _ := ask(t, of, "?by=workloads&cluster="+west)
				assert.Equal(t, len(pods)-1, report.Clusters[0].Read, "after %d:%s", minute, time.Now())
				for i := range report.Rows {
					row := &report.Rows[i]
					want := traffic.NoTraffic
					if row.To.Ref.Name == quiet.Workload.Name {
						want = traffic.NoData
					}
					assert.Equal(t, want, row.State, fmt.Sprint(row.To.Name, " ", row.Reason.String(), " ", row.Detail))
				}
			}
		}
		cancel()
		require.NoError(t, <-ended)
	})
}
