package hub

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/watch"
)

// byUID takes agents for those of the cluster that they name as their UID.
type byUID struct{ Agents }

func (byUID) Run(context.Context, func(string)) {}

func (byUID) Admit(_ context.Context, _ []*x509.Certificate, uid string) (string, error) {
	return uid, nil
}

// TestTurns: while one cluster is compared, another one that may not be compared beside it waits, and its turn comes when
// everything of the first one is there, or its stream has ended.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*agentStream){
		"when everything is there": (*agentStream).complete,
		"when the stream ends":     func(a *agentStream) { a.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, client := serveHub(t, "one", "two", "three")
			first := dialAs(t, client, "one")
			first.awaitHeld()
			assert.Contains(t, toldOf(t, h, "one"), "is compared with what the agent reports")
			waits := func(cluster, before string) {
				t.Helper()
				waittest.Until(t, cluster+" waits", func() bool { return strings.Contains(toldOf(t, h, cluster), before+" wait before it, at most 1 are") })
			}
			second := dialAs(t, client, "two")
			waits("two", "0")
			third := dialAs(t, client, "three")
			waits("three", "1")
			// Its turn cannot come; if it did, it would at once.
			select {
			case f := <-second.frames:
				require.Failf(t, "it is compared", "%v", f)
			case <-time.After(100 * time.Millisecond):
			}
			end(first)
			second.awaitHeld()
			second.cancel()
			third.awaitHeld()
		})
	}
}

// toldOf is why a cluster is not connected.
func toldOf(t *testing.T, h *Hub, cluster string) string {
	t.Helper()
	for _, s := range h.Statuses() {
		if s.Cluster == cluster {
			require.NotNil(t, s.Relay)
			return s.Relay.Reason.What
		}
	}
	return ""
}

func serveHub(t *testing.T, clusters ...string) (*Hub, relayv1.RelayClient) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	source, err := watch.New(watch.Options{Management: &rest.Config{Host: "https://127.0.0.1:1"}, Log: log})
	require.NoError(t, err)
	h := New(Options{Agents: byUID{}, Turns: 1, Log: log})
	for _, cluster := range clusters {
		_, err := h.Add(source, cluster, "")
		require.NoError(t, err)
	}
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return h, relayv1.NewRelayClient(conn)
}

// agentStream is a stream of an agent whose cluster is empty.
type agentStream struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[relayv1.Data, relayv1.Feedback]
	cancel context.CancelFunc
	// frames are those that arrive after the Hello, but for beats.
	frames chan *relayv1.Feedback
	held   []*relayv1.Held
}

func dialAs(t *testing.T, client relayv1.RelayClient, cluster string) *agentStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.Report(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: &relayv1.Hello{
		OldestProtocol: relay.Protocol, NewestProtocol: relay.Protocol, ClusterUid: cluster,
	}}}))
	first, err := stream.Recv()
	require.NoError(t, err)
	require.NotNil(t, first.GetHello())
	a := &agentStream{t: t, stream: stream, cancel: cancel, frames: make(chan *relayv1.Feedback, 1000)}
	t.Cleanup(cancel)
	go func() {
		for {
			f, err := stream.Recv()
			if err != nil {
				return
			}
			if f.GetBeat() == nil {
				a.frames <- f
			}
		}
	}()
	return a
}

// awaitHeld waits until the hub has said what it has of any kind.
func (a *agentStream) awaitHeld() {
	a.t.Helper()
	select {
	case f := <-a.frames:
		require.NotNil(a.t, f.GetHeld())
		a.held = append(a.held, f.GetHeld())
	case <-time.After(waittest.Limit()):
		require.Fail(a.t, "the hub does not say what it has")
	}
}

// complete says of each kind, as soon as the hub has named it, that there is nothing.
func (a *agentStream) complete() {
	a.t.Helper()
	require.NoError(a.t, a.stream.Send(&relayv1.Data{Frame: &relayv1.Data_Cluster{Cluster: &relayv1.ClusterState{Synced: true}}}))
	say := func(held *relayv1.Held) error {
		return a.stream.Send(&relayv1.Data{Frame: &relayv1.Data_Complete{Complete: &relayv1.Complete{Kind: held.GetKind(), Digest: held.GetDigest()}}})
	}
	for _, held := range a.held {
		require.NoError(a.t, say(held))
	}
	go func() {
		for {
			select {
			case f := <-a.frames:
				if say(f.GetHeld()) != nil {
					return
				}
			case <-a.stream.Context().Done():
				return
			}
		}
	}()
}
