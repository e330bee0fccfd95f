// Package agent is the side of the relay in a cluster: it dials the hub, reports the cluster, and carries out the hub's requests with
// its own credential, which never leaves the cluster.
//
//	agent.go     connections, and how long to wait between two
//	replica.go   what is reported
//	exchange.go  requests of the hub, which are carried out
//	guard.go     and those that are refused
//	enforcer.go  what is kept while the hub is away
//	disk.go      and when the agent starts without a hub
//	leave.go     the cluster is deregistered: what is the management plane's is removed
//	home.go      and then the agent itself
//	homeinvited.go  which an invited cluster has it do alone
//	status.go    what there is to be said of it
//	diagnose.go  why the hub is not connected
//	verify.go    what is compared with the hub
//	telemetry.go what proxies count
package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/watch"
)

// Options configure an Agent. All but Log, Dial and Redial are required.
type Options struct {
	// Cluster is the name with which the cluster is registered, and UID that of its namespace kube-system.
	Cluster, UID string
	// Plane is the management plane that the agent obeys.
	Plane snapshot.Plane
	// Config is how to reach the cluster.
	Config *rest.Config
	// Hub is HOST:PORT of the hub, and Dial how to connect: its options have the credentials.
	Hub  string
	Dial []grpc.DialOption
	// TLS is that of Dial, to find out which step of a connection fails; nil looks at DNS and TCP only.
	TLS func() *tls.Config
	// Version is that of the software.
	Version string
	// Log receives what happens to connections; slog.Default() if nil.
	Log *slog.Logger
	// Redial is the first pause before the hub is dialled again, and RedialMost the longest; 1 s and 15 s if zero. With another leader, the
	// hub is back after a Lease has expired, and agents come back at different times.
	Redial, RedialMost time.Duration
	// Disk stores what stands in the cluster, so that it is kept if the agent starts without a hub; nil stores nothing.
	Disk Disk
	// Push is how proxies send numbers by themselves; nil if they cannot.
	Push *telemetry.PushOptions
	// Mesh is the agent's certificate of the mesh, with which proxies are read that take one; see telemetry.LocalOptions. Nil if it has none.
	Mesh func(ctx context.Context) (*tls.Config, error)
	// Home is what the agent removes at the very end, when the cluster is deregistered; nil if it cannot.
	Home Home
	// Grace is how long the hub may have no connection until the agent keeps what stands by itself; 10 s if zero.
	Grace time.Duration
	// Local are further options of what reads the cluster.
	Local watch.LocalOptions
	// Times bound how long nothing may happen on a stream.
	Times pump.Times
}

// Agent speaks for a cluster.
type Agent struct {
	options     Options
	incarnation string
	local       *watch.Local
	replica     *replica
	exchanger   *exchanger
	enforcer    *enforcer
	readings    *telemetry.Local
	parting     *parting

	mu sync.Mutex
	// obeyed is the last term of a leader that was obeyed.
	obeyed  term
	meters  meters
	contact contact
	// stands counts connections that ended because the hub took nothing.
	stands pump.Standstills
}

// term is that of a leader of the hub: how often the leader has changed, and since when it leads, in microseconds since 1970.
type term struct {
	epoch uint64
	since int64
}

// before reports whether a term is over for one who knows another. A Lease that was deleted counts from zero again, so that a term that
// began later counts, too.
func (t term) before(o term) bool { return t.epoch < o.epoch && t.since <= o.since }

// New prepares an Agent. It does no I/O.
func New(o Options) (*Agent, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Redial == 0 {
		o.Redial = time.Second
	}
	if o.RedialMost == 0 {
		o.RedialMost = 15 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	o.Local.Name, o.Local.Plane, o.Local.Config, o.Local.Log = o.Cluster, o.Plane, o.Config, o.Log
	local := watch.NewLocal(o.Local)
	exchanger, err := newExchanger(o.Config, &guard{rules: rules{cluster: o.Cluster, plane: o.Plane}, link: local.Link()}, o.Log)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Cluster, err)
	}
	reported := newReplica(local, o.Log)
	exchanger.verifier = verifier{reported}
	enforcer := newEnforcer(&o, local)
	parting := &parting{local: local, disk: o.Disk, home: o.Home, log: o.Log, begun: make(chan struct{}, 1), signal: enforcer.signal}
	readings := telemetry.NewLocal(telemetry.LocalOptions{
		Cluster:  func() *snapshot.Cluster { c, _ := local.Cluster(); return c },
		Dialects: engine.Dialects(), Mesh: o.Mesh,
	})
	return &Agent{
		options: o, incarnation: rand.Text(), local: local, replica: reported, exchanger: exchanger, enforcer: enforcer, parting: parting, readings: readings,
	}, nil
}

// Left reports whether the cluster is deregistered, and nothing is left in it, so that there is nobody to speak for.
func (a *Agent) Left() bool { return a.parting.gone() }

// Run speaks for the cluster until ctx ends, or nothing is left in it.
func (a *Agent) Run(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	group.Go(func() { a.parting.run(ctx, a.enforcer.cease); end() })
	group.Go(func() { a.local.Run(ctx) })
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.local.Changed():
				pump.Signal(a.replica.signal)
			}
		}
	})
	group.Go(func() { a.enforcer.run(ctx) })
	group.Go(func() { a.readings.Run(ctx) })
	if a.options.Push != nil {
		group.Go(func() { telemetry.NewPush(a.readings, *a.options.Push).Run(ctx) })
	}
	group.Go(func() { a.tell(ctx) })
	away := time.AfterFunc(a.options.Grace, a.enforcer.leave)
	defer away.Stop()
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := a.connect(ctx, away)
		if a.parting.over() {
			end()
		}
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > held {
			failures = 0
		}
		failures++
		a.stands.Note(err, time.Now())
		pause := kube.Jitter(kube.Backoff(a.options.Redial, a.options.RedialMost, failures))
		reason := a.diagnose(ctx, err)
		a.contact.set(reason)
		a.options.Log.Warn("the hub is not connected; trying again", "hub", a.options.Hub, "code", reason.Code, "reason", reason.String(), "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	group.Wait()
}

// connectTimeout bounds how long a connection may take until the hub has answered the first bytes.
const connectTimeout = 5 * time.Second

// held is how long a connection holds until the next pause is a short one again.
const held = 10 * time.Second

// dial prepares a connection to the hub.
func (a *Agent) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(a.options.Hub, append([]grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)), // the hub answers in the same way
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
	}, a.options.Dial...)...)
}

// connect speaks with the hub until one of the streams ends.
func (a *Agent) connect(ctx context.Context, away *time.Timer) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client := relayv1.NewRelayClient(conn)
	var group sync.WaitGroup
	group.Go(func() { end(a.report(ctx, client)) })
	group.Go(func() { end(a.exchange(ctx, client)) })
	group.Go(func() { end(a.desire(ctx, client, away)) })
	<-ctx.Done()
	_ = conn.Close()
	group.Wait()
	return context.Cause(ctx)
}

func (a *Agent) hello() *relayv1.Hello {
	stuck, _, at := a.stands.Count(time.Now())
	return &relayv1.Hello{
		Stuck: uint32(stuck), StuckAt: at,
		OldestProtocol: relay.OldestProtocol, NewestProtocol: relay.Protocol, Version: a.options.Version, Incarnation: a.incarnation, ClusterUid: a.options.UID,
	}
}

// obey returns an error if a hub is not the one to obey.
func (a *Agent) obey(hello *relayv1.Hello) error {
	switch {
	case hello == nil:
		return errors.New("the hub does not say who it is")
	case a.options.Plane.ID != "" && hello.GetPlaneUid() != a.options.Plane.ID:
		return fmt.Errorf("the hub is that of the management plane %q, and this agent is that of %q", hello.GetPlaneUid(), a.options.Plane.ID)
	}
	now := term{hello.GetEpoch(), hello.GetLeadingSince()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.before(a.obeyed) {
		return fmt.Errorf("the hub leads in term %d, and this agent has obeyed one of term %d: it is no longer the leader", now.epoch, a.obeyed.epoch)
	}
	a.obeyed = now
	return nil
}

// stream is one half of a stream of the hub, as far as it is the same for all.
type stream[Out, In any] struct {
	out     pump.Out[*Out]
	receive func() (*In, error)
	take    func(*In) error
}

// run passes frames in both directions until one fails.
func (s stream[Out, In]) run(ctx context.Context, times pump.Times, counted *pump.Metered) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.out.Times = times
	go pump.Receive(times, s.receive, s.take, end)
	err := pump.Cause(ctx, pump.Run(ctx, s.out))
	counted.End(err)
	return err
}

// greet begins a stream with a Hello, and returns the first frame of the hub. Why the hub takes none is what it answers.
func greet[Out, In any](in grpc.BidiStreamingClient[Out, In], hello *Out) (*In, error) {
	if err := in.Send(hello); err != nil {
		_, err = in.Recv()
		return nil, err
	}
	return in.Recv()
}

func (a *Agent) report(ctx context.Context, client relayv1.RelayClient) error {
	in, err := client.Report(ctx)
	if err != nil {
		return err
	}
	first, err := greet(in, &relayv1.Data{Frame: &relayv1.Data_Hello{Hello: a.hello()}})
	if err != nil {
		return err
	}
	if err := a.obey(first.GetHello()); err != nil {
		return err
	}
	a.options.Log.Info("reporting to the hub", "hub", a.options.Hub, "version", first.GetHello().GetVersion())
	a.replica.begin()
	counted := a.meters.report.Begin()
	a.contact.set(snapshot.Reason{})
	return stream[relayv1.Data, relayv1.Feedback]{
		receive: pump.Receiving(counted, in.Recv), take: a.replica.receive,
		out: pump.Out[*relayv1.Data]{
			Send: pump.Sending(counted, in.Send), Next: a.replica.next, Signal: a.replica.signal, Progress: a.replica.progress,
			Beat: func() *relayv1.Data {
				return &relayv1.Data{Frame: &relayv1.Data_Beat{Beat: a.meters.report.Beat()}}
			},
		},
	}.run(ctx, a.options.Times, counted)
}

// desire follows what stands. While it does, the hub is not away.
func (a *Agent) desire(ctx context.Context, client relayv1.RelayClient, away *time.Timer) error {
	in, err := client.Desire(ctx)
	if err != nil {
		return err
	}
	first, err := greet(in, &relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: a.hello()}})
	if err != nil {
		return err
	}
	if err := a.obey(first.GetHello()); err != nil {
		return err
	}
	away.Stop()
	defer away.Reset(a.options.Grace)
	protocol, _ := relay.Common(first.GetHello()) // the hub has said if there is none
	a.enforcer.begin(protocol)
	a.parting.begin()
	defer a.enforcer.end()
	counted := a.meters.desire.Begin()
	return stream[relayv1.Feedback, relayv1.Data]{
		receive: pump.Receiving(counted, in.Recv), take: func(d *relayv1.Data) error {
			if g := d.GetGoodbye(); g != nil {
				a.parting.heard(g)
				return nil
			}
			return a.enforcer.receive(d)
		},
		out: pump.Out[*relayv1.Feedback]{
			Send: pump.Sending(counted, in.Send), Next: func() (*relayv1.Feedback, bool) {
				if frame, more := a.enforcer.next(); more {
					return frame, true
				}
				return a.parting.next()
			}, Signal: a.enforcer.signal,
			Beat: func() *relayv1.Feedback {
				return &relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: &relayv1.Beat{}}}
			},
		},
	}.run(ctx, a.options.Times, counted)
}

func (a *Agent) exchange(ctx context.Context, client relayv1.RelayClient) error {
	in, err := client.Exchange(ctx)
	if err != nil {
		return err
	}
	first, err := greet(in, &relayv1.Answer{Hello: a.hello()})
	if err != nil {
		return err
	}
	if err := a.obey(first.GetHello()); err != nil {
		return err
	}
	a.exchanger.begin()
	counted := a.meters.exchange.Begin()
	return stream[relayv1.Answer, relayv1.Request]{
		receive: pump.Receiving(counted, in.Recv), take: func(r *relayv1.Request) error { a.exchanger.receive(ctx, r); return nil },
		out: pump.Out[*relayv1.Answer]{
			Send: pump.Sending(counted, in.Send), Next: a.exchanger.next, Signal: a.exchanger.signal,
			Beat: func() *relayv1.Answer { return &relayv1.Answer{Beat: &relayv1.Beat{}} },
		},
	}.run(ctx, a.options.Times, counted)
}
