package relaytest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// skewed is a side of another version: both sides see that the other speaks at most the version newest of the protocol.
type skewed struct {
	newest uint32
	// without is a kind that the agent does not know, as it is called on the wire; empty if it knows all.
	without string
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

// unknownKind is what an agent is asked for instead of a kind that it is not to know.
const unknownKind = "later.example.com/v1/Unknown"

// frameOf is a frame, if it is one of these; else nil.
func frameOf[F any](m any) F {
	f, _ := m.(F)
	return f
}

func (s *skewedStream) pass(m any) {
	if said, ok := m.(interface{ GetHello() *relayv1.Hello }); ok && said.GetHello() != nil {
		said.GetHello().NewestProtocol = s.skewed.newest
	}
	if c := frameOf[*relayv1.Data](m).GetComplete(); c != nil && c.GetKind() == unknownKind {
		c.Kind = s.skewed.without
	}
	if h := frameOf[*relayv1.Feedback](m).GetHeld(); h != nil && s.skewed.without != "" && h.GetKind() == s.skewed.without {
		h.Kind = unknownKind
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

// TestAnAgentThatDoesNotKnowAKind: the cluster is read without what its agent does not send, and the kind is named until an agent comes that
// sends it.
func TestAnAgentThatDoesNotKnowAKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := sandboxtest.Clientset(t, w.west).NetworkingV1().NetworkPolicies("default").Create(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shut"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	old := &skewed{newest: relay.Protocol, without: relay.KindName(snapshot.NetworkPolicy)}
	w.dial = []grpc.DialOption{grpc.WithChainStreamInterceptor(old.intercept)}
	stop := w.agent()
	waittest.Until(t, "the cluster is read", func() bool { c := clusterOf(w.relayed); return c != nil && c.Sync == snapshot.Synced })
	said := func() (out []string) {
		for _, f := range w.relayed.Input().Failures {
			if f.Code == snapshot.VersionSkew {
				out = append(out, f.Ref.String()+" "+f.What)
			}
		}
		return out
	}
	c := clusterOf(w.relayed)
	assert.Equal(t, []snapshot.Kind{snapshot.NetworkPolicy}, c.Unsent)
	assert.Equal(t, []snapshot.Kind{snapshot.NetworkPolicy}, c.Denied, "its list says nothing")
	assert.Empty(t, c.NetworkPolicies)
	assert.Equal(t, []string{"KubernetesCluster gloo-mesh/west its agent (version test) is older than meshctl serve and does not send networkpolicies.networking.k8s.io: " +
		"what users write of them there is in no answer, and has no effect on what is written"}, said())

	stop()
	w.dial = nil
	defer w.agent()()
	w.same()
	assert.Len(t, clusterOf(w.relayed).NetworkPolicies, 1)
	// That a kind is known is taken over once all of its objects are here.
	waittest.Until(t, "the kind is not named any more", func() bool { return len(clusterOf(w.relayed).Unsent) == 0 && len(said()) == 0 })
}
