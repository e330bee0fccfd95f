//go:build linux

package telemetry_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// BenchmarkAgent is what it costs an agent to take 400 statistics of each of 1,000 proxies every 10 seconds: as a part of one core, and as resident
// memory beside that of an idle process. It should be below 0.5 and 80 MB. What proxies push takes more memory: each connection has five goroutines,
// and a buffer of TLS for its largest record, which are MB-stacks and most of MB-heap. An operation is one period of 10 seconds.
//
// The proxies are another process, behind real TLS and gRPC or HTTP. What they say is a message that a real Envoy sent, widened: of the statistics that
// are asked for, a proxy has used all or only the common ones, and calls more destinations then.
func BenchmarkAgent(b *testing.B) {
	const count = 1000
	for _, used := range []struct {
		of    string
		stats []string
		// scraped is how many are widened to 400 of a page, which has no summaries.
		scraped int
	}{{"all", rare, 421}, {"common", nil, 466}} {
		families := widened(b, 400, used.stats)
		b.Run(fmt.Sprintf("push/proxies=%d/families=%d/used=%s", count, len(families), used.of), func(b *testing.B) {
			certificates, proxy := telemetry.Certificates(b, "spiffe://cluster.local/ns/shop/sa/web")
			message, err := messageOf(families)
			require.NoError(b, err)
			p := &proxies{Count: count, Message: message}
			p.Certificate, p.Key = inPEM(b, proxy)
			a := newAgentSide(b, telemetry.LocalOptions{Cluster: clusterOf(count), Dialects: engine.Dialects()})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			p.Address = listener.Addr().String()
			push := telemetry.NewPush(a.local, telemetry.PushOptions{TLS: certificates, Listen: func(context.Context) (net.Listener, error) { return fromPods{listener}, nil }})
			a.run(b, traffic.Push, push.Run)
			p.start(b)
			a.measure(b, count)
			require.Zero(b, push.Refused())
		})
		page := pageOf(widened(b, used.scraped, used.stats))
		b.Run(fmt.Sprintf("scrape/proxies=%d/families=%d/used=%s", count, strings.Count(page, "# TYPE"), used.of), func(b *testing.B) {
			at := netip.MustParseAddrPort((&proxies{Page: []byte(page)}).start(b))
			options := telemetry.LocalOptions{Cluster: clusterOf(telemetry.MostRead), Dialects: engine.Dialects()}
			options = options.Every(period, func(ctx context.Context, _ netip.AddrPort, _ *tls.Config, path string, limit int64) ([]byte, error) {
				return kube.GetFromAddress(ctx, at, nil, path, limit)
			})
			a := newAgentSide(b, options)
			for range count / telemetry.MostRead { // as many agents
				a.local = telemetry.NewLocal(options)
				a.run(b, traffic.Agent)
			}
			a.measure(b, count)
		})
	}
}

// fromPods has connections come from the addresses of pods.
type fromPods struct{ net.Listener }

// Accept implements net.Listener.
func (l fromPods) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from := conn.RemoteAddr().(*net.TCPAddr)
	ip := from.IP.To4()
	return fromPod{conn, &net.TCPAddr{IP: net.IPv4(10, ip[1], ip[2], ip[3]), Port: from.Port}}, nil
}

type fromPod struct {
	net.Conn
	addr net.Addr
}

// RemoteAddr implements net.Conn.
func (c fromPod) RemoteAddr() net.Addr { return c.addr }

// clusterOf has so many pods with a proxy.
func clusterOf(count int) func() *snapshot.Cluster {
	c := &snapshot.Cluster{Name: "west", Sync: snapshot.Synced}
	for i := range count {
		at := &corev1.Pod{}
		at.Namespace, at.Name, at.Spec.ServiceAccountName = "shop", pod(i), "web"
		at.Spec.Containers = []corev1.Container{{Name: "istio-proxy"}}
		at.Status.Phase, at.Status.PodIP = corev1.PodRunning, net.IPv4(10, 1, byte(i>>8), byte(i)).String()
		c.Pods = append(c.Pods, at)
	}
	return func() *snapshot.Cluster { return c }
}

// agentSide is what takes the numbers of proxies, and makes what is sent of them.
type agentSide struct {
	local *telemetry.Local
	// sent is how many readings were made, of which bytes are the sizes. failed are those that say that a proxy was not read.
	sent, failed, bytes atomic.Int64
	// before is the resident memory of this process without it, in bytes.
	before float64
}

func newAgentSide(b *testing.B, o telemetry.LocalOptions) *agentSide {
	b.Helper()
	debug.FreeOSMemory()
	return &agentSide{local: telemetry.NewLocal(o), before: telemetry.Resident(b)}
}

// run takes numbers by a door until the benchmark ends, and makes what an agent sends of them.
func (a *agentSide) run(b *testing.B, door traffic.Door, more ...func(context.Context)) {
	b.Helper()
	local := a.local
	local.Want(door)
	ctx, cancel := context.WithCancel(context.Background())
	group := sync.WaitGroup{}
	for _, f := range append(more, local.Run) {
		group.Go(func() { f(ctx) })
	}
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-local.Signal():
			}
			for s, some := local.Next(); some; s, some = local.Next() {
				text, err := proto.Marshal(relay.ReadingOf(s))
				if err != nil || s.Reason != "" {
					a.failed.Add(1)
				}
				a.bytes.Add(int64(len(text)))
				a.sent.Add(1)
			}
		}
	})
	b.Cleanup(func() { cancel(); group.Wait() })
}

// measure waits until each proxy was read once, and measures from then on.
func (a *agentSide) measure(b *testing.B, count int64) {
	b.Helper()
	for began := time.Now(); a.sent.Load() < count; time.Sleep(10 * time.Millisecond) {
		require.Less(b, time.Since(began), 2*time.Minute, "%d of %d proxies were read", a.sent.Load(), count)
	}
	sent, bytes, most := a.sent.Load(), a.bytes.Load(), 0.0
	began, cpu := time.Now(), telemetry.CPUSeconds(b)
	for b.Loop() {
		for until := time.Now().Add(period); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			most = max(most, telemetry.Resident(b))
		}
	}
	took := time.Since(began).Seconds()
	cpu = telemetry.CPUSeconds(b) - cpu
	sent, bytes = a.sent.Load()-sent, a.bytes.Load()-bytes
	heap, stacks := telemetry.Live()
	require.Zero(b, a.failed.Load())
	require.InDelta(b, took/period.Seconds(), float64(sent)/float64(count), 0.5, "readings are made as they come")
	b.ReportMetric(cpu/took, "cores")
	b.ReportMetric((most-a.before)/1e6, "MB")
	b.ReportMetric(heap/1e6, "MB-heap")
	b.ReportMetric(stacks/1e6, "MB-stacks")
	b.ReportMetric(float64(bytes)/float64(sent), "B/reading")
}

// recordedCluster is the one that a real Envoy sent numbers of, and recordedHost is in its name.
const recordedHost, recordedCluster = "reviews", "cluster.outbound|9080||reviews.bookinfo.svc.cluster.local;."

// asked are the statistics of clusters that `meshctl telemetry enable` asks for.
var asked = regexp.MustCompile(`^(upstream_rq_([1-5]xx|403|time|timeout|per_try_timeout|rx_reset|pending_overflow|retry)|upstream_cx_(total|connect_fail|none_healthy|rx_bytes_total|tx_bytes_total)|ssl\.(handshake|connection_error|fail_verify_error|fail_verify_san))$`)

// rare are those of them that the recorded proxy has not used.
var rare = []string{
	"upstream_rq_3xx", "upstream_rq_5xx", "upstream_rq_403", "upstream_rq_timeout", "upstream_rq_per_try_timeout", "upstream_rq_rx_reset", "upstream_rq_pending_overflow",
	"upstream_rq_retry", "upstream_cx_connect_fail", "upstream_cx_none_healthy", "ssl.handshake", "ssl.connection_error", "ssl.fail_verify_error",
}

// widened are so many statistics: those of a recorded cluster that are asked for, and more of them, once for each of as many destinations as needed.
func widened(t testing.TB, count int, more []string) (out []*dto.MetricFamily) {
	t.Helper()
	text, err := os.ReadFile("testdata/push/envoy-1.40.0-requests.bin")
	require.NoError(t, err)
	all, err := familiesOf(text)
	require.NoError(t, err)
	var of []*dto.MetricFamily
	for _, f := range all {
		if stat, is := strings.CutPrefix(f.GetName(), recordedCluster); is && asked.MatchString(stat) {
			of = append(of, f)
		}
		if f.GetName() == "server.uptime" {
			out = append(out, f)
		}
	}
	require.Len(t, of, 7)
	for _, stat := range more {
		require.True(t, asked.MatchString(stat))
		f := proto.Clone(of[0]).(*dto.MetricFamily)
		f.Name = proto.String(recordedCluster + stat)
		of = append(of, f)
	}
	for i := 0; len(out) < count; i++ {
		f := proto.Clone(of[i%len(of)]).(*dto.MetricFamily)
		f.Name = proto.String(strings.Replace(f.GetName(), recordedHost, fmt.Sprintf("%s-%02d", recordedHost, i/len(of)), 1))
		out = append(out, f)
	}
	return out
}

// pageOf are statistics as Envoy's page has them, with the tags of Istio's configuration. Summaries are not on it.
func pageOf(families []*dto.MetricFamily) string {
	var out strings.Builder
	for _, f := range families {
		cluster, stat, ofCluster := strings.Cut(strings.TrimPrefix(f.GetName(), "cluster."), ";.")
		name, tags := "envoy_cluster_"+strings.ReplaceAll(stat, ".", "_"), fmt.Sprintf(`cluster_name="%s;"`, cluster)
		if class, is := strings.CutPrefix(stat, "upstream_rq_"); is && strings.HasSuffix(class, "xx") {
			name, tags = "envoy_cluster_upstream_rq", fmt.Sprintf(`response_code_class="%s",%s`, class, tags)
		}
		if !ofCluster {
			name, tags = "envoy_"+strings.ReplaceAll(f.GetName(), ".", "_"), ""
		}
		m := f.GetMetric()[0]
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			fmt.Fprintf(&out, "# TYPE %s counter\n%s{%s} %v\n", name, name, tags, m.GetCounter().GetValue())
		case dto.MetricType_GAUGE:
			fmt.Fprintf(&out, "# TYPE %s gauge\n%s{%s} %v\n", name, name, tags, m.GetGauge().GetValue())
		case dto.MetricType_HISTOGRAM:
			h := m.GetHistogram()
			fmt.Fprintf(&out, "# TYPE %s histogram\n", name)
			for _, bucket := range h.GetBucket() {
				fmt.Fprintf(&out, "%s_bucket{%s,le=\"%v\"} %d\n", name, tags, bucket.GetUpperBound(), bucket.GetCumulativeCount())
			}
			fmt.Fprintf(&out, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %v\n%s_count{%s} %d\n", name, tags, h.GetSampleCount(), name, tags, h.GetSampleSum(), name, tags, h.GetSampleCount())
		default:
		}
	}
	return out.String()
}
