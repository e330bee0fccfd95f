package hub

import (
	"context"
	"errors"
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
	first, err := pump.First(h.options.Times, stream.Recv)
	if err != nil {
		return err
	}
	who, err := h.enter(stream.Context(), first.GetHello())
	if err != nil {
		return err
	}
	defer who.leave()
	if err := stream.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: h.hello()}}); err != nil {
		return err
	}
	if who.cluster.owes {
		return hold(h, who, stream.Recv, func(*relayv1.Data) error { return nil }, pump.Out[*relayv1.Feedback]{Send: stream.Send, Beat: func() *relayv1.Feedback {
			return &relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: &relayv1.Beat{}}}
		}})
	}
	name := who.cluster.name
	frames, err := who.cluster.begin(who)
	if err != nil {
		return err
	}
	h.options.Log.Info("the agent of a cluster has connected", "cluster", name, "version", who.version, "address", who.address)
	b := h.book(name)
	counted := b.report.Begin()
	b.begins()
	signal := make(chan struct{}, 1)
	turn := h.turns.await(who.ctx, func() { pump.Signal(signal) })
	defer turn.end()
	b.await(func() int { return h.turns.before(turn) }, cap(h.turns.places))
	h.tell(who.cluster)
	go h.keepTelling(who.ctx, who.cluster)
	overdue := time.AfterFunc(h.options.Grace, frames.Overdue)
	defer overdue.Stop()
	go pump.Receive(h.options.Times, pump.Receiving(counted, stream.Recv), func(frame *relayv1.Data) error {
		defer pump.Signal(signal)
		err := frames.Receive(frame)
		if turn.has() && frames.Compared() {
			turn.end()
		}
		if frame.GetComplete() != nil || frame.GetSame() != nil || frame.GetCluster() != nil {
			h.tell(who.cluster)
		}
		return err
	}, who.end)
	err = pump.Run(who.ctx, pump.Out[*relayv1.Feedback]{
		Times: h.options.Times, Signal: signal, Send: pump.Sending(counted, stream.Send),
		Next: func() (*relayv1.Feedback, bool) {
			if !turn.came() {
				return nil, false // beats tell the agent that it is heard
			}
			frame := frames.Next()
			return frame, frame != nil
		},
		Beat: func() *relayv1.Feedback {
			return &relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: b.report.Beat()}}
		},
	})
	err = who.cause(err)
	counted.End(err)
	b.standsDown.Note(err, time.Now())
	h.options.Log.Info("the stream of an agent ended", "cluster", name, "reason", err)
	// A reconnection must not be visible: the cluster is frozen if there is none for a time.
	time.AfterFunc(h.options.Grace, func() {
		why := wordsOf(err)
		frames.Lost("its agent has no connection: " + why)
		if b.losing(why) {
			h.tell(who.cluster)
		}
	})
	return err
}

// wordsOf says why a stream ended.
func wordsOf(err error) string {
	if errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		return "it broke, or the agent ended" // gRPC does not tell one from the other
	}
	return status.Convert(err).Message()
}

// begin makes the stream of Report of a caller that of the cluster.
func (c *cluster) begin(who *caller) (*watch.RemoteStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remote == nil {
		return nil, errRemoved
	}
	if c.reporter != nil {
		c.reporter.end(errReplaced)
	}
	c.reporter, c.stream = who, c.remote.Begin(who.protocol)
	return c.stream, nil
}

// lose freezes the cluster at once, under the lock.
func (c *cluster) lose(reason string) {
	if c.stream != nil {
		c.stream.Lost(reason)
	}
}
