package relaytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// window is how many bytes of a stream may be on their way, in one direction, that nobody has read.
const window = 64 << 10

// narrowServer is a server of such windows, and narrowDial are those of a client.
func (w *world) narrowServer(hub relayv1.RelayServer) (address string) {
	w.t.Helper()
	server := grpc.NewServer(grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window))
	relayv1.RegisterRelayServer(server, hub)
	listener := listen(w.t)
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func narrowDial() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
	}
}

// narrow is a stream of Report, on which the hub has said who it is.
func (w *world) narrow(ctx context.Context) grpc.BidiStreamingClient[relayv1.Data, relayv1.Feedback] {
	w.t.Helper()
	conn, err := grpc.NewClient(w.narrowServer(w.hub), narrowDial()...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	stream, err := relayv1.NewRelayClient(conn).Report(ctx)
	require.NoError(w.t, err)
	require.NoError(w.t, stream.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: &relayv1.Hello{
		OldestProtocol: relay.Protocol, NewestProtocol: relay.Protocol, Incarnation: "narrow", ClusterUid: "uid-west",
	}}}))
	first, err := stream.Recv()
	require.NoError(w.t, err)
	require.NotNil(w.t, first.GetHello())
	return stream
}

// refusedChange is a Change of many objects that the hub cannot take, so that its answer is as long.
func refusedChange(sequence uint64, puts int) *relayv1.Data {
	c := &relayv1.Change{Sequence: sequence, Kind: relay.KindName(snapshot.Service)}
	for n := range puts {
		c.Puts = append(c.Puts, &relayv1.Put{
			Name: &relayv1.Name{Namespace: "default", Name: fmt.Sprintf("s-%d-%d", sequence, n)}, Hash: make([]byte, 16), Object: []byte("\xff\x00noise"),
		})
	}
	return &relayv1.Data{Frame: &relayv1.Data_Change{Change: c}}
}

// TestTheHubReadsWhileItCannotWrite: the agent sends more than the windows hold in both directions, and reads nothing before all is sent.
func TestTheHubReadsWhileItCannotWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	stream := w.narrow(ctx)
	const changes = 200
	for n := range uint64(changes) {
		require.NoError(t, stream.Send(refusedChange(n+1, 100)), n)
	}
	rejects, acked := 0, uint64(0)
	for acked < changes {
		f, err := stream.Recv()
		require.NoError(t, err)
		rejects += len(f.GetAck().GetRejects())
		acked = max(acked, f.GetAck().GetSequence())
	}
	assert.Equal(t, changes*100, rejects)
}

// TestAnAgentThatReadsNothingIsLeft: it sends beats, and what the hub sends to it stays where it is.
func TestAnAgentThatReadsNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, impatient)
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	stream := w.narrow(ctx)
	w.run(func(running context.Context) {
		// Once the hub has ended the stream, they block until ctx ends.
		for n := uint64(1); n <= 100 && stream.Send(refusedChange(n, 100)) == nil; n++ {
		}
		_ = beat(running, func() error { return stream.Send(&relayv1.Data{Frame: &relayv1.Data_Beat{Beat: &relayv1.Beat{}}}) })
	})
	waittest.Until(t, "the hub has ended the stream, and says why", func() bool { return w.status().Report.Resets[pump.ReasonStuck] == 1 })
}

// fullHub reads nothing of what an agent reports. Flood is closed when it is to send more than the agent's window holds, and through once
// all of that has passed; nil if it is to send beats only.
type fullHub struct {
	deafHub
	flood, through chan struct{}
}

func (h *fullHub) Report(in grpc.BidiStreamingServer[relayv1.Data, relayv1.Feedback]) error {
	_ = in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: h.hello()}})
	_ = in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Held{Held: &relayv1.Held{Kind: relay.KindName(snapshot.Service), Digest: make([]byte, 16)}}})
	say := func() error {
		return in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: &relayv1.Beat{Progress: &relayv1.Progress{UnackedBytes: 1}}}})
	}
	if h.flood != nil {
		select {
		case <-h.flood:
		case <-in.Context().Done():
			return nil
		}
		for range window {
			if err := say(); err != nil {
				return err
			}
		}
		close(h.through)
	}
	return beat(in.Context(), say)
}

// fill makes Services in west of which an agent reports more than windows hold, also when it is compressed.
func (w *world) fill() {
	w.t.Helper()
	client, chance := sandboxtest.Clientset(w.t, w.west), rand.New(rand.NewPCG(waittest.Seed(w.t), 0))
	for n := range 150 {
		labels := map[string]string{}
		for i := range 60 {
			text := "x"
			for len(text) < 60 {
				text += strconv.FormatUint(chance.Uint64(), 36)
			}
			labels[fmt.Sprint("l", i)] = text[:60]
		}
		_, err := client.CoreV1().Services("default").Create(w.t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("filled-", n), Labels: labels}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// TestAnAgentReadsWhileItCannotWrite: the hub reads nothing of what the agent reports, and sends more than the agent's window holds.
func TestAnAgentReadsWhileItCannotWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	full := &fullHub{deafHub: deafHub{plane: w.plane.ID}, flood: make(chan struct{}), through: make(chan struct{})}
	a := w.newAgent(w.narrowServer(full), lines{t}, narrowDial()...)
	w.run(a.Run)
	waittest.Until(t, "the agent has more to send than passes", func() bool { return a.Series().Streams[pump.Report].Sent.Bytes > 2*window })
	close(full.flood)
	waittest.Until(t, "all that the hub sends passes", func() bool {
		select {
		case <-full.through:
			return true
		default:
			return false
		}
	})
}

// TestAHubThatReadsNothingIsLeft: it sends beats, and what the agent reports stays on its way.
func TestAHubThatReadsNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, impatient)
	w.fill()
	log := &sandboxtest.Buffer{}
	a := w.newAgent(w.narrowServer(&fullHub{deafHub: deafHub{plane: w.plane.ID}}), log, narrowDial()...)
	w.run(a.Run)
	waittest.Until(t, "the agent leaves", func() bool { return strings.Contains(log.String(), "is not acknowledged for") })
	assert.Regexp(t, `core/v1/Service default/(filled-\d+|kubernetes) was sent, and is not acknowledged`, log.String(), "which object, of those that were sent")
}
