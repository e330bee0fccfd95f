package agent

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// takes is a hub that takes readings only, and wants them once it is told so.
type takes struct {
	relayv1.UnimplementedRelayServer
	want   chan bool
	came   chan *relayv1.Telling
	epochs chan uint64
}

func (h *takes) Telemetry(in grpc.BidiStreamingServer[relayv1.Telling, relayv1.Wanted]) error {
	first, err := in.Recv()
	if err != nil {
		return err
	}
	h.came <- first
	hello := &relayv1.Hello{OldestProtocol: relay.OldestProtocol, NewestProtocol: relay.Protocol, PlaneUid: "plane", Epoch: <-h.epochs, LeadingSince: 1}
	if err := in.Send(&relayv1.Wanted{Hello: hello}); err != nil {
		return err
	}
	go func() {
		for wanted := range h.want {
			_ = in.Send(&relayv1.Wanted{Wanted: wanted})
		}
	}()
	for {
		frame, err := in.Recv()
		if err != nil {
			return err
		}
		h.came <- frame
	}
}

// TestTelling: an agent reads proxies when the hub wants it, and sends what became of each; a hub of the past gets nothing.
func TestTelling(t *testing.T) {
	t.Parallel()
	h := &takes{want: make(chan bool), came: make(chan *relayv1.Telling, 10), epochs: make(chan uint64, 2)}
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	a, err := New(Options{
		Cluster: "west", UID: "uid", Plane: snapshot.Plane{ID: "plane"}, Config: &rest.Config{Host: "https://127.0.0.1:1"}, Hub: listener.Addr().String(),
		Dial:  []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
		Times: pump.Times{Beat: 20 * time.Millisecond},
	})
	require.NoError(t, err)
	a.readings = telemetry.NewLocal(telemetry.LocalOptions{Dialects: engine.Dialects(), Cluster: func() *snapshot.Cluster {
		return &snapshot.Cluster{Name: "west", Sync: snapshot.Synced, Pods: []*corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "pod", CreationTimestamp: metav1.Unix(7, 0)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "istio-proxy"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}}}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go a.readings.Run(ctx)
	h.epochs <- 5
	ended := make(chan error, 1)
	go func() { ended <- a.telling(ctx) }()
	assert.Equal(t, "uid", (<-h.came).GetHello().GetClusterUid())
	for range 3 {
		frame := <-h.came
		assert.NotNil(t, frame.GetBeat(), "nothing is read before the hub wants it")
		assert.Nil(t, frame.GetReading())
	}
	h.want <- true
	frame := <-h.came
	for ; frame.GetReading() == nil; frame = <-h.came {
	}
	r := frame.GetReading()
	assert.Equal(t, "a/pod", r.GetPod().GetNamespace()+"/"+r.GetPod().GetName())
	assert.Equal(t, int64(7), r.GetCreated())
	assert.Equal(t, "FAILED", r.GetFailed())
	assert.Contains(t, r.GetDetail(), "no address yet")
	server.Stop()
	require.Error(t, <-ended)

	old := &takes{came: make(chan *relayv1.Telling, 10), epochs: make(chan uint64, 1)}
	old.epochs <- 4
	past := grpc.NewServer()
	relayv1.RegisterRelayServer(past, old)
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = past.Serve(listener) }()
	t.Cleanup(past.Stop)
	a.options.Hub, a.obeyed.since = listener.Addr().String(), 2
	assert.ErrorContains(t, a.telling(t.Context()), "no longer the leader")
	assert.Len(t, old.came, 1)
}
