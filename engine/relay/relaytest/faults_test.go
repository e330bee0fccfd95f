package relaytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// impatient are times with which a test ends soon.
var impatient = pump.Times{Beat: 100 * time.Millisecond, Silence: time.Second, Patience: time.Second}

// TestWhatIsSwallowedOnTheWayIsNoticed: a load balancer takes bytes, and answers TCP, and passes nothing on.
func TestWhatIsSwallowedOnTheWayIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, pump.Times{Beat: 100 * time.Millisecond, Silence: time.Second}) // what waits is not what ends it
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	a := w.newAgent(w.proxy.address(), lines{t})
	w.run(a.Run)
	w.same()
	// Which side notices first is chance.
	silent := func() uint64 {
		n := w.status().Report.Resets[pump.ReasonSilent]
		for _, s := range a.Series().Streams {
			n += s.Resets[pump.ReasonSilent]
		}
		return n
	}
	before, silences := w.proxy.connections(), silent()
	w.proxy.set(func(p *proxy) { p.swallow = true })
	waittest.Until(t, "one of both hears nothing, though it waits for nothing", func() bool { return silent() > silences })
	client := sandboxtest.Clientset(t, w.west)
	for range 5 {
		w.edit(client, chance)
	}
	waittest.Until(t, "the agent dials again", func() bool { return w.proxy.connections() > before })
	waittest.Until(t, "the cluster is frozen", func() bool { return clusterOf(w.relayed).Sync == snapshot.Stale })
	w.proxy.set(func(p *proxy) { p.swallow = false })
	w.same()
}

// TestBeatsKeepAStream: a proxy on the way ends connections on which nothing passes for a time.
func TestBeatsKeepAStream(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, pump.Times{Beat: 50 * time.Millisecond})
	w.proxy.set(func(p *proxy) { p.idle = 2 * time.Second })
	w.agent()
	w.same()
	waittest.Until(t, "the agent has also asked, by a connection of its own, whether readings are taken", func() bool { return w.proxy.connections() == 2 })
	connections, passed := w.proxy.connections(), 0
	w.proxy.set(func(p *proxy) { passed = p.passed })
	waittest.Until(t, "nothing but beats passes for long", func() bool {
		more := 0
		w.proxy.set(func(p *proxy) { more = p.passed - passed })
		return more > 20_000
	})
	assert.Equal(t, connections, w.proxy.connections())
}

// TestAHubThatTakesNothingInIsLeft: it hears, and acknowledges nothing. The agent says which object it waits for.
func TestAHubThatTakesNothingInIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, impatient)
	deaf := &deafHub{plane: w.plane.ID}
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, deaf)
	listener := listen(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	log := &sandboxtest.Buffer{}
	a := w.newAgent(listener.Addr().String(), log)
	w.run(a.Run)
	waittest.Until(t, "the agent leaves", func() bool { return strings.Contains(log.String(), "is not acknowledged for") })
	assert.Contains(t, log.String(), "core/v1/", "which object")
	waittest.Until(t, "the agent says that it is stuck, and so it does to a hub", func() bool {
		return a.Disconnected().Code == snapshot.RelayBlocked && deaf.stuck.Load() >= pump.StuckAfter
	})
	assert.Contains(t, a.Disconnected().What, "the last one at core/v1/Namespace /")
}

// deafHub beats, and reads everything, and acknowledges nothing.
type deafHub struct {
	relayv1.UnimplementedRelayServer
	plane string
	// stuck is what the agent has said of that.
	stuck atomic.Uint32
}

func (d *deafHub) hello() *relayv1.Hello { return &relayv1.Hello{PlaneUid: d.plane} }

func (d *deafHub) Report(in grpc.BidiStreamingServer[relayv1.Data, relayv1.Feedback]) error {
	_ = in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: d.hello()}})
	_ = in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Held{Held: &relayv1.Held{Kind: relay.KindName(snapshot.Namespace), Digest: make([]byte, 16)}}})
	go func() {
		for {
			frame, err := in.Recv()
			if err != nil {
				return
			}
			if hello := frame.GetHello(); hello != nil {
				d.stuck.Store(hello.GetStuck())
			}
		}
	}()
	return beat(in.Context(), func() error {
		return in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: &relayv1.Beat{}}})
	})
}

func (d *deafHub) Desire(in grpc.BidiStreamingServer[relayv1.Feedback, relayv1.Data]) error {
	_ = in.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: d.hello()}})
	return beat(in.Context(), func() error { return in.Send(&relayv1.Data{Frame: &relayv1.Data_Beat{Beat: &relayv1.Beat{}}}) })
}

func (d *deafHub) Exchange(in grpc.BidiStreamingServer[relayv1.Answer, relayv1.Request]) error {
	_ = in.Send(&relayv1.Request{Hello: d.hello()})
	return beat(in.Context(), func() error { return in.Send(&relayv1.Request{Beat: &relayv1.Beat{}}) })
}

// beat sends something every 100 ms until ctx ends.
func beat(ctx context.Context, send func() error) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if err := send(); err != nil {
				return err
			}
		}
	}
}

// client is one of the hub, without an agent.
func (w *world) client() relayv1.RelayClient {
	w.t.Helper()
	conn, err := grpc.NewClient(w.proxy.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	return relayv1.NewRelayClient(conn)
}

// report begins a stream of Report.
func (w *world) report(incarnation string) (grpc.BidiStreamingClient[relayv1.Data, relayv1.Feedback], error) {
	w.t.Helper()
	stream, err := w.client().Report(w.t.Context())
	require.NoError(w.t, err)
	require.NoError(w.t, stream.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: &relayv1.Hello{
		OldestProtocol: relay.Protocol, NewestProtocol: relay.Protocol, Incarnation: incarnation, ClusterUid: "uid-west",
	}}}))
	_, err = stream.Recv()
	return stream, err
}

// TestAnAgentThatSaysHalf: a cluster of which not all arrived is frozen, whatever its agent says of itself.
func TestAnAgentThatSaysHalf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stream, err := w.report("liar")
	require.NoError(t, err)
	require.NoError(t, stream.Send(&relayv1.Data{Frame: &relayv1.Data_Cluster{Cluster: &relayv1.ClusterState{Synced: true}}}))
	kind := relay.KindName(snapshot.Namespace)
	require.NoError(t, stream.Send(&relayv1.Data{Frame: &relayv1.Data_Complete{Complete: &relayv1.Complete{Kind: kind, Digest: make([]byte, 16)}}}))
	waittest.Until(t, "what arrived was taken in", func() bool { c := clusterOf(w.relayed); return c != nil && c.Reading })
	assert.Equal(t, snapshot.Unsynced, clusterOf(w.relayed).Sync)
	waittest.Until(t, "it is said", func() bool { return w.relayed.Input() != nil && clusterOf(w.relayed).Reason != "" })
	assert.Equal(t, snapshot.Unsynced, clusterOf(w.relayed).Sync)
}

// TestNoFrameIsMoreThanAnError: what is no frame of an agent ends its own stream, and the hub works on.
func TestNoFrameIsMoreThanAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(kind string, object []byte) *relayv1.Data {
		return &relayv1.Data{Frame: &relayv1.Data_Change{Change: &relayv1.Change{Sequence: 1, Kind: kind, Puts: []*relayv1.Put{
			{Name: &relayv1.Name{Namespace: "default", Name: "x"}, Hash: make([]byte, 16), Object: object},
		}}}}
	}
	for name, c := range map[string]struct {
		frame *relayv1.Data
		// ends is the code with which the stream does; OK if it goes on.
		ends codes.Code
	}{
		"unknown kind":           {put("core/v1/Secret", []byte("x")), codes.InvalidArgument},
		"noise":                  {put(relay.KindName(snapshot.Service), []byte("\xff\x00noise")), codes.OK},
		"noise about the mirror": {put(relay.WrittenName(snapshot.ServiceEntry), []byte("\xff")), codes.OK},
		"another name":           {put(relay.KindName(snapshot.Service), []byte("")), codes.OK},
		"too large":              {put(relay.KindName(snapshot.Service), make([]byte, 5<<20)), codes.ResourceExhausted},
		"no kind":                {&relayv1.Data{Frame: &relayv1.Data_Ask{Ask: &relayv1.Ask{Kind: "core/v1/Secret"}}}, codes.InvalidArgument},
		"out of order":           {&relayv1.Data{Frame: &relayv1.Data_Change{Change: &relayv1.Change{Sequence: 9, Kind: relay.KindName(snapshot.Service)}}}, codes.InvalidArgument},
	} {
		stream, err := w.report(name)
		require.NoError(t, err)
		require.NoError(t, stream.Send(c.frame), name)
		acked := false
		for err == nil && !acked {
			var f *relayv1.Feedback
			f, err = stream.Recv()
			acked = f.GetAck() != nil
			if acked {
				assert.Len(t, f.GetAck().GetRejects(), 1, name)
			}
		}
		assert.Equal(t, c.ends, status.Code(err), "%s: %v", name, err)
		_ = stream.CloseSend()
	}
	w.agent()
	w.same()
}

// TestAnAgentOfAnotherProtocolIsTold: which side is to be upgraded.
func TestAnAgentOfAnotherProtocolIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stream, err := w.client().Exchange(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&relayv1.Answer{Hello: &relayv1.Hello{OldestProtocol: 7, NewestProtocol: 9, Version: "v9"}}))
	_, err = stream.Recv()
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
	assert.ErrorContains(t, err, "the agent of west (version v9) speaks versions 7 to 9 of the relay protocol")
}

// TestTwoAgentsOfOneCluster: a cluster was copied with the Secret of its agent. Neither is believed.
func TestTwoAgentsOfOneCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent()
	w.same()
	w.agent()
	waittest.Until(t, "it is said", func() bool {
		c := clusterOf(w.relayed)
		return c.Sync == snapshot.Stale && strings.Contains(c.Reason, "several agents speak for cluster west")
	})
}

// TestAHubThatStartsEmptyRemovesNothing: what it wants follows from what it has read, which is nothing at first, and part of it then. What
// stands is kept until the hub has read the cluster.
func TestAHubThatStartsEmptyRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	services := sandboxtest.Clientset(t, w.west).CoreV1().Services("default")
	expose := func(name string) {
		_, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	derive := func(west *snapshot.Cluster) map[string]string {
		wanted := map[string]string{}
		for _, s := range west.Services {
			wanted[s.Name] = "org"
		}
		return wanted
	}
	serving := w.server()
	serving.derive = derive
	for n := range 8 {
		expose(fmt.Sprint("s", n))
	}
	w.agent()
	w.same()
	serving.written()
	removed := w.removals()
	serving.stop()
	w.proxy.set(func(p *proxy) { p.target = w.serve(2); p.slow = 20_000; p.close() })
	again := w.server()
	again.derive = derive
	again.apply()
	waittest.Until(t, "the hub has begun to read", func() bool { c := clusterOf(w.relayed); return c != nil && c.Reading })
	w.proxy.set(func(p *proxy) { p.slow = 0 })
	w.same()
	expose("more")
	waittest.Until(t, "what is new is written", func() bool { west := clusterOf(w.direct); return len(west.IssuedCertificates) == len(west.Services) })
	again.written()
	assert.Zero(t, removed())
}
