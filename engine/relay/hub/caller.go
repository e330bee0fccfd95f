package hub

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// caller is the agent of a cluster on one stream.
type caller struct {
	cluster *cluster
	// ctx is that of the stream, and end ends it.
	ctx context.Context
	end context.CancelCauseFunc
	// dismissed is why the hub has ended the stream, see dismiss; nil if it has not.
	dismissed atomic.Pointer[error]
	// uid is that of its cluster, shown are its certificates, and address is where it calls from. incarnation is another after each start.
	uid, incarnation, address, version string
	shown                              []*x509.Certificate
	// stuck is how many of its connections ended because the hub took nothing, and stuckAt what waited the last time.
	stuck   uint32
	stuckAt string
	// protocol is the version that it and the hub both speak.
	protocol uint32
}

// maxStuck is how many connections an agent is believed to have made within pump.StuckWithin.
const maxStuck = 1000

// enter admits the agent on a stream that begins with hello. The stream has to leave when it ends.
func (h *Hub) enter(ctx context.Context, hello *relayv1.Hello) (*caller, error) {
	if hello == nil {
		return nil, status.Error(codes.InvalidArgument, "the first frame is no Hello")
	}
	c := &caller{uid: hello.GetClusterUid(), incarnation: relay.Text(hello.GetIncarnation()), version: relay.Text(hello.GetVersion())}
	c.stuck, c.stuckAt = min(hello.GetStuck(), maxStuck), relay.Text(hello.GetStuckAt())
	c.shown, c.address = callerOf(ctx)
	name, err := h.options.Agents.Admit(ctx, c.shown, c.uid)
	if err != nil {
		h.refuse(ctx, h.claimed(ctx, name, ""), snapshot.RelayIdentity, err)
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	var common bool
	if c.protocol, common = relay.Common(hello); !common {
		err := fmt.Errorf("the agent of %s (version %s) speaks versions %d to %d of the relay protocol, and the hub versions %d to %d; upgrade the older one",
			name, c.version, hello.GetOldestProtocol(), hello.GetNewestProtocol(), relay.OldestProtocol, relay.Protocol)
		h.refuse(ctx, name, snapshot.RelayVersion, err)
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	h.mu.Lock()
	c.cluster = h.clusters[name]
	h.mu.Unlock()
	if c.cluster == nil {
		c.cluster = h.debt(name)
	}
	if c.cluster == nil {
		return nil, status.Errorf(codes.PermissionDenied, "no cluster %s is registered to be reached through its agent; register it on the management cluster", name)
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	if err := c.join(); err != nil {
		c.end(nil)
		return nil, err
	}
	// It may have been revoked before it was one of the callers that are looked at then.
	h.review(ctx, name)
	if err := c.cause(nil); err != nil {
		c.leave()
		return nil, err
	}
	if !c.cluster.owes {
		h.book(name).admitted(c)
	}
	return c, nil
}

// join makes a caller one of its cluster.
func (c *caller) join() error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	if err := c.cluster.rivals.enter(c, time.Now()); err != nil {
		return err
	}
	c.cluster.callers[c] = true
	return nil
}

// leave says that the stream of a caller ends.
func (c *caller) leave() {
	c.end(nil)
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	delete(c.cluster.callers, c)
}

// dismiss ends streams. An agent that loses one of them closes the others, which would end without a reason: so all have theirs first.
func dismiss(reasons map[*caller]error) {
	for who, reason := range reasons {
		who.dismissed.CompareAndSwap(nil, &reason)
	}
	for who, reason := range reasons {
		who.end(reason)
	}
}

// cause is why the stream of a caller ended: why the hub did that, if it did, or else err.
func (c *caller) cause(err error) error {
	if reason := c.dismissed.Load(); reason != nil {
		return *reason
	}
	return pump.Cause(c.ctx, err)
}

// callerOf are the certificates that the caller has shown, which were not verified, and its address.
func callerOf(ctx context.Context) (shown []*x509.Certificate, address string) {
	from, _ := peer.FromContext(ctx)
	if from == nil {
		return nil, ""
	}
	if info, ok := from.AuthInfo.(credentials.TLSInfo); ok {
		shown = info.State.PeerCertificates
	}
	return shown, from.Addr.String()
}

// Run ends the streams of agents that are not to be heard any more, until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	h.options.Agents.Run(ctx, func(name string) { h.review(ctx, name) })
}

// review admits the agent of a cluster again.
func (h *Hub) review(ctx context.Context, name string) {
	h.mu.Lock()
	c := cmp.Or(h.clusters[name], h.debts[name])
	h.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.callers))
	c.mu.Unlock()
	refused := map[*caller]error{}
	for _, who := range all {
		if _, err := h.options.Agents.Admit(ctx, who.shown, who.uid); err != nil && ctx.Err() == nil {
			refused[who] = status.Error(codes.Unauthenticated, err.Error())
		}
	}
	dismiss(refused)
	for who, err := range refused {
		h.options.Log.Warn("the agent of a cluster is not heard any more", "cluster", name, "address", who.address, "reason", wordsOf(err))
	}
}

// rivals finds out whether several agents speak for one cluster: each takes the place of the other, again and again. One that starts
// again does not come back as the one that it was.
type rivals struct {
	// known are the incarnations that were heard, the last one at the end, and returns are when one came back after another.
	known   []string
	returns []time.Time
}

// How often an incarnation may come back within a time, and how many are remembered.
const (
	returnsMost   = 3
	returnsWindow = time.Minute
	knownMost     = 8
)

// enter returns an error if several agents speak for the cluster of a caller.
func (r *rivals) enter(c *caller, now time.Time) error {
	at := slices.Index(r.known, c.incarnation)
	switch {
	case at < 0:
		r.known = append(r.known, c.incarnation)
	case at < len(r.known)-1:
		r.returns = append(r.returns, now)
		r.known = append(slices.Delete(r.known, at, at+1), c.incarnation)
	}
	r.known = r.known[max(0, len(r.known)-knownMost):]
	r.returns = slices.DeleteFunc(r.returns, func(at time.Time) bool { return now.Sub(at) > returnsWindow })
	if len(r.returns) <= returnsMost {
		return nil
	}
	reason := fmt.Sprintf("several agents speak for cluster %s, at %s and elsewhere: only one may run; its cluster may have been copied, with the Secret of the agent", c.cluster.name, c.address)
	err := status.Error(codes.AlreadyExists, reason)
	c.cluster.hangUp(err)
	c.cluster.lose(reason)
	return err
}
