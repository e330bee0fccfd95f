// Package hub is the side of the relay that agents dial. It takes over what they report of their clusters, and sends requests to these
// clusters through them.
//
//	hub.go       the server: which agent a stream is of, and one stream of each kind for each cluster
//	report.go    an agent's cluster, replicated to a watch.Remote
//	exchange.go  requests to a cluster as an http.RoundTripper
package hub

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/watch"
)

// Options configure a Hub. Identify is required.
type Options struct {
	// Identify is the cluster whose agent has made a request, by its certificate. Nothing that the agent says counts.
	Identify func(context.Context) (cluster string, err error)
	// Plane is the UID of the management plane, and Epoch how often its leader has changed.
	Plane string
	Epoch uint64
	// Version is that of the software.
	Version string
	// Grace is how long a cluster may have no stream until it is frozen: a reconnection must not be visible. 10 s if zero.
	Grace time.Duration
	// Log receives who connects; slog.Default() if nil.
	Log *slog.Logger
}

// Hub serves agents. Its methods may be called from any goroutine.
type Hub struct {
	relayv1.UnimplementedRelayServer
	options     Options
	incarnation string

	mu       sync.Mutex
	clusters map[string]*cluster
}

// cluster is what a Hub has of a cluster.
type cluster struct {
	name     string
	exchange *exchange

	mu sync.Mutex
	// remote is nil until the cluster is registered here.
	remote *watch.Remote
	// uid is that of the cluster whose agent came first.
	uid string
	// stream is that of Report, or the last one; nil if there was none.
	stream *stream
}

// New prepares a Hub.
func New(o Options) *Hub {
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Hub{options: o, incarnation: rand.Text(), clusters: map[string]*cluster{}}
}

func (h *Hub) cluster(name string) *cluster {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[name]
	if c == nil {
		c = &cluster{name: name, exchange: newExchange(name)}
		h.clusters[name] = c
	}
	return c
}

// Add registers a cluster with a Source: it is read and written through its agent from now on.
func (h *Hub) Add(source *watch.Source, name, domain string) error {
	c := h.cluster(name)
	remote, err := source.SetRemote(name, domain, c.exchange)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remote != remote {
		c.remote = remote
		c.endStream(errReplaced)
	}
	return nil
}

// errRemoved ends the streams of a cluster that is not registered any more.
var errRemoved = status.Error(codes.PermissionDenied, "the cluster is not registered any more")

// Remove ends the streams of a cluster, which is not registered any more.
func (h *Hub) Remove(name string) {
	h.mu.Lock()
	c := h.clusters[name]
	delete(h.clusters, name)
	h.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remote = nil
	c.endStream(errRemoved)
	c.exchange.end(errRemoved)
}

// endStream ends the stream of Report that there is, under the lock.
func (c *cluster) endStream(cause error) {
	if c.stream != nil {
		c.stream.end(cause)
	}
}

func (h *Hub) hello() *relayv1.Hello {
	return &relayv1.Hello{
		OldestProtocol: relay.Protocol, NewestProtocol: relay.Protocol, Version: h.options.Version, Incarnation: h.incarnation,
		PlaneUid: h.options.Plane, Epoch: h.options.Epoch,
	}
}

// admit is the cluster of whose agent a stream is that began with hello.
func (h *Hub) admit(ctx context.Context, hello *relayv1.Hello) (*cluster, error) {
	name, err := h.options.Identify(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "%v", err)
	}
	if hello == nil {
		return nil, status.Error(codes.InvalidArgument, "the first frame is no Hello")
	}
	if hello.GetOldestProtocol() > relay.Protocol || hello.GetNewestProtocol() < relay.Protocol {
		return nil, status.Errorf(codes.FailedPrecondition, "the agent of %s (version %s) speaks versions %d to %d of the relay protocol, and the hub version %d: upgrade the older one",
			name, hello.GetVersion(), hello.GetOldestProtocol(), hello.GetNewestProtocol(), relay.Protocol)
	}
	h.mu.Lock()
	c := h.clusters[name]
	h.mu.Unlock()
	if c == nil {
		return nil, status.Errorf(codes.PermissionDenied, "no cluster %s is registered to be reached through its agent", name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uid == "" {
		c.uid = hello.GetClusterUid()
	}
	if c.uid != hello.GetClusterUid() {
		return nil, status.Errorf(codes.PermissionDenied, "the agent of %s is in the cluster with UID %q, and was in that with %q: register the cluster again if it was made anew",
			name, hello.GetClusterUid(), c.uid)
	}
	return c, nil
}
