// Package hub is the side of the relay that agents dial. It takes over what they report of their clusters, and sends requests to these
// clusters through them.
//
//	hub.go       the server: which agent a stream is of, and one stream of each kind for each cluster
//	report.go    an agent's cluster, replicated to a watch.Remote
//	turns.go     how many clusters are compared at once
//	exchange.go  requests to a cluster as an http.RoundTripper
//	desire.go    what an agent is to keep while the hub is away
package hub

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/watch"
)

// Agents says who an agent is, by the certificates that it has shown, the first one its own. Nothing that it says of itself counts, but for
// the UID of its cluster, which must be the one with which it was enrolled.
type Agents interface {
	// Admit is the cluster whose agent it is. An error says why it is not to be heard.
	Admit(ctx context.Context, shown []*x509.Certificate, uid string) (cluster string, err error)
	// Enroll issues a certificate for a token: the chain and all roots, in PEM.
	Enroll(ctx context.Context, token string, request []byte, uid string) (cluster string, chain, roots []byte, err error)
	// Renew issues a certificate for another key.
	Renew(ctx context.Context, shown []*x509.Certificate, request []byte, uid string) (cluster string, chain, roots []byte, err error)
}

// Options configure a Hub. Agents is required.
type Options struct {
	// Agents says who an agent is.
	Agents Agents
	// Plane is the UID of the management plane, and Epoch how often its leader has changed.
	Plane string
	Epoch uint64
	// Version is that of the software.
	Version string
	// Grace is how long a cluster may have no stream until it is frozen: a reconnection must not be visible. 10 s if zero.
	Grace time.Duration
	// Turns is how many clusters are compared at once; 16 if zero. All others wait, so that none takes so
	// long that it counts as lost, when all agents dial at the same time.
	Turns int
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
	// turns are those of clusters that are compared.
	turns turns
	// standing outlives clusters: who writes says once what stands, however a cluster is reached.
	standing map[string]*Standing
}

// cluster is what a Hub has of a cluster.
type cluster struct {
	name     string
	exchange *exchange

	mu sync.Mutex
	// remote is nil until the cluster is registered here.
	remote *watch.Remote
	// stream is that of Report, or the last one; nil if there was none.
	stream *stream
}

// New prepares a Hub.
func New(o Options) *Hub {
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Turns == 0 {
		o.Turns = 16
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Hub{options: o, incarnation: rand.Text(), clusters: map[string]*cluster{}, standing: map[string]*Standing{}, turns: make(turns, o.Turns)}
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

// Add registers a cluster with a Source: it is read and written through its agent from now on. The configuration sends requests that way,
// and is the same pointer as long as the cluster is registered.
func (h *Hub) Add(source *watch.Source, name, domain string) (*rest.Config, error) {
	c := h.cluster(name)
	remote, err := source.SetRemote(name, domain, c.exchange)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remote != remote {
		c.remote = remote
		c.endStream(errReplaced)
	}
	return remote.Config(), nil
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
	if hello == nil {
		return nil, status.Error(codes.InvalidArgument, "the first frame is no Hello")
	}
	name, err := h.options.Agents.Admit(ctx, shown(ctx), hello.GetClusterUid())
	if err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "%v", err)
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
	return c, nil
}

// shown are the certificates that the caller has shown; they were not verified.
func shown(ctx context.Context) []*x509.Certificate {
	caller, _ := peer.FromContext(ctx)
	if caller == nil {
		return nil
	}
	if info, ok := caller.AuthInfo.(credentials.TLSInfo); ok {
		return info.State.PeerCertificates
	}
	return nil
}

// Enroll implements relayv1.RelayServer.
func (h *Hub) Enroll(ctx context.Context, r *relayv1.EnrollRequest) (*relayv1.Certificate, error) {
	cluster, chain, roots, err := h.options.Agents.Enroll(ctx, r.GetToken(), r.GetRequest(), r.GetClusterUid())
	return h.certificate(cluster, chain, roots, err)
}

// Renew implements relayv1.RelayServer.
func (h *Hub) Renew(ctx context.Context, r *relayv1.RenewRequest) (*relayv1.Certificate, error) {
	cluster, chain, roots, err := h.options.Agents.Renew(ctx, shown(ctx), r.GetRequest(), r.GetClusterUid())
	return h.certificate(cluster, chain, roots, err)
}

func (h *Hub) certificate(cluster string, chain, roots []byte, err error) (*relayv1.Certificate, error) {
	if err != nil {
		h.options.Log.Warn("an agent got no certificate", "reason", err)
		return nil, status.Errorf(codes.PermissionDenied, "%v", err)
	}
	h.options.Log.Info("an agent got a certificate", "cluster", cluster)
	return &relayv1.Certificate{Chain: chain, Roots: roots, PlaneUid: h.options.Plane, Cluster: cluster}, nil
}
