package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Relay is how agents reach this process.
type Relay struct {
	// Bind is the address that agents dial.
	Bind string
	// Advertise is HOST:PORT at which other replicas reach Bind: what does not lead passes connections on to the leader. Without it, it
	// closes them.
	Advertise string
	// Identify prepares what knows the agents of a management plane, and the TLS of the hub, for a term as the leader. Writes go through
	// the fence of the term.
	Identify func(ctx context.Context, management *rest.Config, namespace, plane string) (hub.Agents, *tls.Config, error)
	// Readings takes what agents read of proxies; none is taken if it is nil.
	Readings hub.Readings
}

// door is where agents come in: their connections are served while this process leads, and passed on to the leader else.
type door struct {
	listener net.Listener
	leader   *leadership
	log      *slog.Logger

	mu sync.Mutex
	// passed counts connections that are passed on.
	passed passedOn
	// within takes connections while this process leads; nil else.
	within *inside
}

// inside is the door as a listener of one term.
type inside struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Accept implements net.Listener.
func (i *inside) Accept() (net.Conn, error) {
	select {
	case conn := <-i.conns:
		return conn, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (i *inside) Close() error {
	i.once.Do(func() { close(i.closed) })
	return nil
}

// Addr implements net.Listener.
func (i *inside) Addr() net.Addr { return i.address }

// openDoor listens for agents until ctx ends; nil if there is no relay.
func openDoor(ctx context.Context, o Options, leader *leadership) (*door, error) {
	if o.Relay == nil {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Relay.Bind)
	if err != nil {
		return nil, fmt.Errorf("serve: listening for agents: %w", err)
	}
	d := &door{listener: listener, leader: leader, log: o.Log}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go d.run(ctx)
	return d, nil
}

func (d *door) run(ctx context.Context) {
	for {
		conn, err := d.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, for example: they are given back
			d.log.Warn("a connection of an agent was not accepted", "error", err)
			if !sleep(ctx, time.Second) {
				return
			}
			continue
		}
		d.mu.Lock()
		within := d.within
		d.mu.Unlock()
		if within == nil {
			go d.passOn(ctx, conn)
			continue
		}
		select {
		case within.conns <- conn:
		case <-within.closed:
			d.counters().dropped(noLeader)
			_ = conn.Close()
		case <-ctx.Done():
			_ = conn.Close()
		}
	}
}

// passTimeout bounds how long the leader may take to accept a connection that is passed on.
const passTimeout = 5 * time.Second

// passOn splices a connection to the leader, without looking into it: TLS ends there.
func (d *door) passOn(ctx context.Context, from net.Conn) {
	defer func() { _ = from.Close() }()
	holder := d.leader.other.Load()
	if holder == nil {
		d.counters().dropped(noLeader)
		return // there is no leader yet; the agent dials again
	}
	_, address, known := strings.Cut(*holder, advertised)
	if !known {
		d.counters().dropped(noAddress)
		return
	}
	to, err := (&net.Dialer{Timeout: passTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		d.counters().dropped(noAnswer)
		d.log.Warn("the connection of an agent cannot be passed on to the leader", "leader", *holder, "error", err)
		return
	}
	defer func() { _ = to.Close() }()
	defer d.counters().begin()()
	defer context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })()
	var group sync.WaitGroup
	group.Go(func() { splice(to, from) })
	group.Go(func() { splice(from, to) })
	group.Wait()
}

// splice copies until one side ends, and ends the other.
func splice(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// advertised stands in the identity of a process between its name and its address.
const advertised = "@"

// enter serves agents until ctx ends; it returns at once if there is no door.
func (d *door) enter(ctx context.Context, h *hub.Hub, config *tls.Config) {
	if d == nil {
		return
	}
	within := &inside{address: d.listener.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(config)),
		// Three streams, and one call; on another connection, one stream. Whoever reaches the port may connect, and has to say soon who it is.
		grpc.MaxConcurrentStreams(8), grpc.ConnectionTimeout(passTimeout),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
			broken := kube.Catch(func() { answer, err = handle(ctx, request) })
			return answer, d.withstand(info.FullMethod, err, broken)
		}),
		grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			broken := kube.Catch(func() { err = handle(server, stream) })
			return d.withstand(info.FullMethod, err, broken)
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: 20 * time.Second, Timeout: 10 * time.Second,
			// So that certificates and revocations take effect, and load moves. gRPC spreads it by a tenth.
			MaxConnectionAge: time.Hour, MaxConnectionAgeGrace: 10 * time.Second,
		}),
	)
	relayv1.RegisterRelayServer(server, h)
	d.set(within)
	defer d.set(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(within) // it ends by Stop only
	}()
	<-ctx.Done()
	_ = within.Close()
	server.Stop()
	<-ended
}

// withstand is the error of a call; a panic ends the call of one agent, and no other.
func (d *door) withstand(method string, err, broken error) error {
	if broken == nil {
		return err
	}
	d.log.Error("a call of an agent failed; this is a bug in meshctl, please report it", "method", method, "error", broken)
	return status.Error(codes.Internal, "the hub failed; its log says how")
}

func (d *door) set(within *inside) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.within = within
}
