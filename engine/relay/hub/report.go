package hub

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/watch"
)

var errReplaced = status.Error(codes.Aborted, "another stream of the agent of this cluster has begun")

// Report implements relayv1.RelayServer.
func (h *Hub) Report(stream grpc.BidiStreamingServer[relayv1.Data, relayv1.Feedback]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	c, err := h.admit(stream.Context(), first.GetHello())
	if err != nil {
		return err
	}
	if err := stream.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: h.hello()}}); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	frames, err := c.begin(end)
	if err != nil {
		return err
	}
	h.options.Log.Info("the agent of a cluster has connected", "cluster", c.name, "version", first.GetHello().GetVersion())
	overdue := time.AfterFunc(h.options.Grace, frames.Overdue)
	defer overdue.Stop()
	signal := make(chan struct{}, 1)
	turn := h.turns.await(ctx, func() { pump.Signal(signal) })
	defer turn.end()
	go pump.Receive(stream.Recv, func(frame *relayv1.Data) error {
		defer pump.Signal(signal)
		err := frames.Receive(frame)
		if turn.has() && frames.Compared() {
			turn.end()
		}
		return err
	}, end)
	err = pump.Run(ctx, signal, func() (*relayv1.Feedback, bool) {
		if !turn.came() {
			return nil, false // beats tell the agent that it is heard
		}
		frame := frames.Next()
		return frame, frame != nil
	}, func() *relayv1.Feedback {
		return &relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: &relayv1.Beat{}}}
	}, stream.Send)
	err = pump.Cause(ctx, err)
	h.options.Log.Info("the stream of an agent ended", "cluster", c.name, "reason", err)
	// A reconnection must not be visible: the cluster is frozen if there is none for a time.
	time.AfterFunc(h.options.Grace, func() { frames.Lost("its agent has no connection: " + status.Convert(err).Message()) })
	return err
}

// stream is a stream of Report.
type stream struct{ end context.CancelCauseFunc }

// begin makes a stream that of the cluster; end ends it.
func (c *cluster) begin(end context.CancelCauseFunc) (*watch.RemoteStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remote == nil {
		return nil, errRemoved
	}
	c.endStream(errReplaced)
	c.stream = &stream{end}
	return c.remote.Begin(), nil
}
