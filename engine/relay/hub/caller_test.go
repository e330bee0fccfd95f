package hub

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// revoking admits a number of times, and then not any more.
type revoking struct {
	Agents
	left atomic.Int64
}

func (r *revoking) Admit(context.Context, []*x509.Certificate, string) (string, error) {
	if r.left.Add(-1) < 0 {
		return "", errors.New("it was revoked")
	}
	return "west", nil
}

// revocable is a Hub with a cluster west.
func revocable(t *testing.T) (*Hub, *revoking) {
	t.Helper()
	agents := &revoking{}
	h := New(Options{Agents: agents, Log: slog.New(slog.DiscardHandler)})
	source, err := watch.New(watch.Options{Management: &rest.Config{Host: "https://127.0.0.1:1"}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = h.Add(source, "west", "")
	require.NoError(t, err)
	return h, agents
}

// TestARevocationMeanwhile: the certificate of an agent is revoked after it was admitted, and before its stream is one of those that end.
func TestARevocationMeanwhile(t *testing.T) {
	t.Parallel()
	h, agents := revocable(t)
	agents.left.Store(1)
	_, err := h.enter(t.Context(), hello("west"))
	require.ErrorContains(t, err, "it was revoked")
	assert.Empty(t, h.cluster("west").callers)

	agents.left.Store(2)
	who, err := h.enter(t.Context(), hello("west"))
	require.NoError(t, err)
	who.leave()
	assert.Empty(t, h.cluster("west").callers)
}

// TestAllStreamsEndForOneReason: an agent that loses one closes the others at once, before the hub comes to end them.
func TestAllStreamsEndForOneReason(t *testing.T) {
	t.Parallel()
	h, agents := revocable(t)
	agents.left.Store(100)
	var all []*caller
	var closes []context.CancelFunc
	for range 3 {
		ctx, closed := context.WithCancel(t.Context())
		who, err := h.enter(ctx, hello("west"))
		require.NoError(t, err)
		defer who.leave()
		all, closes = append(all, who), append(closes, closed)
	}
	for _, who := range all {
		end := who.end
		who.end = func(cause error) {
			end(cause)
			for _, closed := range closes {
				closed()
			}
		}
	}
	agents.left.Store(0)
	h.review(t.Context(), "west")
	for _, who := range all {
		require.ErrorContains(t, who.cause(who.ctx.Err()), "it was revoked")
	}
}

// TestRefusalsOfMany: whoever reaches the port is counted, and not each one is told.
func TestRefusalsOfMany(t *testing.T) {
	t.Parallel()
	b, start := &book{}, time.Unix(0, 0)
	refused := func(what string, after time.Duration) bool {
		r := &Refusal{At: start.Add(after)}
		r.Reason, r.Since = snapshot.Reason{Code: snapshot.RelayIdentity, What: what}, r.At
		return b.refuse(r)
	}
	assert.True(t, refused("a", 0))
	assert.False(t, refused("b", time.Second))
	assert.False(t, refused("c", 9*time.Second))
	assert.True(t, refused("a", 9*time.Second), "the same one goes on")
	assert.Equal(t, start, b.refused.Since)
	assert.False(t, refused("b", 18*time.Second))
	assert.True(t, refused("b", 20*time.Second))
	assert.EqualValues(t, 6, b.refusals)
}

// TestWhatAnAgentSaysOfItselfIsBounded: it is shown and stored.
func TestWhatAnAgentSaysOfItselfIsBounded(t *testing.T) {
	t.Parallel()
	h, _ := serving(t)
	long := strings.Repeat("v", 1<<20)
	who, err := h.enter(t.Context(), &relayv1.Hello{OldestProtocol: relay.Protocol, NewestProtocol: relay.Protocol, ClusterUid: "west", Version: long, Incarnation: long})
	require.NoError(t, err)
	defer who.leave()
	assert.Less(t, len(who.version)+len(who.incarnation), 1100)
}
