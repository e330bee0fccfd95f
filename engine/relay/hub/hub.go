// Package hub is the side of the relay that agents dial. It takes over what they report of their clusters, and sends requests to these
// clusters through them.
//
//	hub.go       the server, and its clusters
//	caller.go    which agent a stream is of
//	report.go    an agent's cluster, replicated to a watch.Remote
//	turns.go     how many clusters are compared at once
//	exchange.go  requests to a cluster as an http.RoundTripper
//	desire.go    what an agent is to keep while the hub is away
//	leave.go     agents that are told to remove themselves
//	verify.go    whether the hub has what the agent and the cluster have
//	metrics.go   numbers of all clusters
//	telemetry.go what agents read of proxies
//	book.go      what is known of the connection of each cluster, and who was refused
package hub

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Agents says who an agent is, by the certificates that it has shown, the first one its own. Nothing that it says of itself counts, but for
// the UID of its cluster, which must be the one with which it was enrolled.
type Agents interface {
	// Admit is the cluster whose agent it is. An error says why it is not to be heard.
	Admit(ctx context.Context, shown []*x509.Certificate, uid string) (cluster string, err error)
	// Enroll issues a certificate for a token to an agent that calls from an address: the chain and all roots, in PEM.
	Enroll(ctx context.Context, token string, request []byte, uid, address string) (cluster string, chain, roots []byte, err error)
	// Run calls changed when Admit may say something else of the agent of a cluster than before, until ctx ends.
	Run(ctx context.Context, changed func(cluster string))
	// Renew issues a certificate for another key.
	Renew(ctx context.Context, shown []*x509.Certificate, request []byte, uid string) (cluster string, chain, roots []byte, err error)
}

// Options configure a Hub. Agents is required.
type Options struct {
	// Agents says who an agent is.
	Agents Agents
	// Plane is the UID of the management plane, and Term that of its leader.
	Plane string
	Term  Term
	// Version is that of the software.
	Version string
	// Grace is how long a cluster may have no stream until it is frozen: a reconnection must not be visible. 10 s if zero.
	Grace time.Duration
	// Turns is how many clusters are compared at once; 16 if zero. All others wait, so that none takes so
	// long that it counts as lost, when all agents dial at the same time.
	Turns int
	// Log receives who connects; slog.Default() if nil.
	Log *slog.Logger
	// Readings takes what agents read of proxies; none is taken if it is nil.
	Readings Readings
	// Times bound how long nothing may happen on a stream.
	Times pump.Times
}

// Term is the time for which a process leads the management plane. Agents obey none that began before another that they have obeyed.
type Term struct {
	// Epoch is how often the leader has changed since there is a Lease, and Since when this one became it.
	Epoch uint64
	Since time.Time
}

// Hub serves agents. Its methods may be called from any goroutine.
type Hub struct {
	relayv1.UnimplementedRelayServer
	options     Options
	incarnation string

	mu       sync.Mutex
	clusters map[string]*cluster
	// debts are clusters that are not registered any more, and whose agents have come back to remove what is left there.
	debts map[string]*cluster
	// turns are those of clusters that are compared.
	turns turns
	// standing outlives clusters: who writes says once what stands, however a cluster is reached.
	standing map[string]*Standing

	// verifyPause is the pause between two looks at what differs.
	verifyPause time.Duration

	booksMu sync.Mutex
	books   map[string]*book
}

// cluster is what a Hub has of a cluster.
type cluster struct {
	name     string
	exchange *exchange
	telling  telling
	farewell farewell
	// owes: it is one of the debts.
	owes bool

	mu sync.Mutex
	// callers are those of all streams.
	callers map[*caller]bool
	// remote is nil until the cluster is registered here.
	remote *watch.Remote
	// reporter is whose stream of Report there is, or was the last one, and stream what takes its frames; nil if there was none.
	reporter *caller
	stream   *watch.RemoteStream
	rivals   rivals
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
	return &Hub{
		options: o, incarnation: rand.Text(), turns: turns{places: make(chan struct{}, o.Turns)}, clusters: map[string]*cluster{}, debts: map[string]*cluster{}, standing: map[string]*Standing{},
		books: map[string]*book{}, verifyPause: verifyPause,
	}
}

func (h *Hub) cluster(name string) *cluster {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgive(name, errReplaced)
	c := h.clusters[name]
	if c == nil {
		c = &cluster{name: name, exchange: newExchange(name), callers: map[*caller]bool{}}
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
	if c.remote != remote {
		c.remote, c.stream = remote, nil
		c.hangUp(errReplaced)
	}
	c.mu.Unlock()
	h.tell(c)
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
	defer h.forget(name)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remote, c.stream = nil, nil
	c.hangUp(errRemoved)
	c.exchange.end(errRemoved)
}

// hangUp ends all streams, under the lock.
func (c *cluster) hangUp(cause error) {
	reasons := make(map[*caller]error, len(c.callers))
	for who := range c.callers {
		reasons[who] = cause
	}
	dismiss(reasons)
}

func (h *Hub) hello() *relayv1.Hello {
	return &relayv1.Hello{
		OldestProtocol: relay.OldestProtocol, NewestProtocol: relay.Protocol, Version: h.options.Version, Incarnation: h.incarnation,
		PlaneUid: h.options.Plane, Epoch: h.options.Term.Epoch, LeadingSince: h.options.Term.Since.UnixMicro(),
	}
}

// Enroll implements relayv1.RelayServer.
func (h *Hub) Enroll(ctx context.Context, r *relayv1.EnrollRequest) (*relayv1.Certificate, error) {
	_, address := callerOf(ctx)
	cluster, chain, roots, err := h.options.Agents.Enroll(ctx, r.GetToken(), r.GetRequest(), r.GetClusterUid(), hostOf(address))
	if err != nil {
		h.refuse(ctx, h.claimed(ctx, cluster, r.GetToken()), snapshot.RelayToken, err)
	}
	return h.certificate(cluster, chain, roots, err)
}

// Renew implements relayv1.RelayServer.
func (h *Hub) Renew(ctx context.Context, r *relayv1.RenewRequest) (*relayv1.Certificate, error) {
	shown, _ := callerOf(ctx)
	cluster, chain, roots, err := h.options.Agents.Renew(ctx, shown, r.GetRequest(), r.GetClusterUid())
	if err != nil {
		h.refuse(ctx, h.claimed(ctx, cluster, ""), snapshot.RelayNotRenewed, err)
	}
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
