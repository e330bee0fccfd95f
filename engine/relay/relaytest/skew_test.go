package relaytest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// skewed is a side of another version: both sides see that the other speaks at most the version newest of the protocol.
type skewed struct {
	newest uint32
	// together and apart count the frames in which a receiver says what it has of all kinds, as of version 2, and of one.
	together, apart atomic.Int64
}

func (s *skewed) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := next(ctx, desc, conn, method, opts...)
	return &skewedStream{stream, s}, err
}

type skewedStream struct {
	grpc.ClientStream
	skewed *skewed
}

func (s *skewedStream) pass(m any) {
	if said, ok := m.(interface{ GetHello() *relayv1.Hello }); ok && said.GetHello() != nil {
		said.GetHello().NewestProtocol = s.skewed.newest
	}
	if f, ok := m.(*relayv1.Feedback); ok {
		if f.GetHeldAll() != nil {
			s.skewed.together.Add(1)
		}
		if f.GetHeld() != nil {
			s.skewed.apart.Add(1)
		}
	}
}

func (s *skewedStream) SendMsg(m any) error {
	s.pass(m)
	return s.ClientStream.SendMsg(m)
}

func (s *skewedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.pass(m)
	}
	return err
}

// TestSkew: with a side of the version before, or of a later one that still speaks this one, west is in the end what it is when it is read
// directly, and what is to be written there is written, whatever ends meanwhile.
func TestSkew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		newest   uint32
		together bool
	}{
		"the version before": {newest: relay.Protocol - 1},
		"a later one":        {newest: relay.Protocol + 7, together: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), &skewed{newest: c.newest}
			w.dial = []grpc.DialOption{grpc.WithChainStreamInterceptor(s.intercept)}
			w.differs(w.server(), rand.New(rand.NewPCG(waittest.Seed(t), 0)), 6)
			w.proxy.cut() // both have something to compare now
			stop := w.agent()
			defer stop()
			w.same()
			if c.together {
				assert.Positive(t, s.together.Load())
			} else {
				assert.Zero(t, s.together.Load(), "the version before knows no such frame")
				assert.Positive(t, s.apart.Load())
			}
		})
	}
}
