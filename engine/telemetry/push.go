package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Bounds of what proxies send, which are not trusted. See also those of a sender.
const (
	// maxMessage is the largest message of a proxy, in bytes.
	maxMessage = 16 << 20
	// perConnection is how many streams one connection may have: a proxy has one for numbers, or one for each kind of log.
	perConnection = 2
	// settled is how long after a message nothing more comes of the same time: proxies may send one time in several messages.
	settled = 500 * time.Millisecond
	// pause is how long at least lies between two readings of a proxy that are passed on; Istio's send more often.
	pause = 10 * time.Second
)

// PushOptions configure a Push. All but Log are required.
type PushOptions struct {
	// TLS is the certificate of this process, which the proxies of the mesh know, and by which roots it knows theirs. It may be asked for each
	// connection (GetConfigForClient).
	TLS *tls.Config
	// Listen opens the port on which proxies are taken. It is open only while what they send is wanted.
	Listen func(ctx context.Context) (net.Listener, error)
	Log    *slog.Logger

	// settled and pause replace the constants, in tests.
	settled, pause time.Duration
}

// Push takes what the proxies of the cluster that it runs in send by themselves, as Envoy's metrics service does.
//
// What a proxy says of itself is a claim. A pod is known by three things that have to be of one pod: the address that it connects from, the
// ServiceAccount in its certificate, and its ID. Whoever reports for another pod gets no stream.
type Push struct {
	options PushOptions
	local   *Local

	mu      sync.Mutex // guards what follows
	senders map[netip.Addr]*sender
}

// NewPush prepares a Push, which hands over what comes to a Local. It does no I/O.
func NewPush(local *Local, o PushOptions) *Push {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.settled == 0 {
		o.settled, o.pause = settled, pause
	}
	return &Push{options: o, local: local, senders: map[netip.Addr]*sender{}}
}

// Refused is how many connections and streams were refused.
func (p *Push) Refused() uint64 {
	return p.local.Lost().Refused
}

// Run takes connections of proxies, while what they send is wanted, until ctx ends.
func (p *Push) Run(ctx context.Context) {
	for ctx.Err() == nil {
		door, changed := p.local.Wanted()
		if door == traffic.Push {
			if err := p.listen(ctx, changed); err != nil {
				p.options.Log.Warn("proxies cannot send numbers; trying again", "error", err)
				if !sleep(ctx, pause) {
					return
				}
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// listen takes connections until it is wanted otherwise.
func (p *Push) listen(ctx context.Context, changed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, err := p.options.Listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	p.options.Log.Info("taking what proxies send", "address", listener.Addr().String())
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p.serve(ctx, listener)
}

// serve takes connections of proxies until ctx ends.
func (p *Push) serve(ctx context.Context, listener net.Listener) error {
	config := demanding(p.options.TLS)
	server := grpc.NewServer(
		grpc.Creds(metering{credentials.NewTLS(config), p}), grpc.ForceServerCodecV2(doorCodec{}), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(perConnection),
		grpc.StaticStreamWindowSize(windowBytes), grpc.StaticConnWindowSize(windowOfAll), grpc.MaxHeaderListSize(maxHeaders),
		grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes),
		grpc.ConnectionTimeout(10*time.Second), grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
	)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.metrics.v3.MetricsService", HandlerType: (*any)(nil), Metadata: "envoy/service/metrics/v3/metrics_service.proto",
		Streams: []grpc.StreamDesc{{StreamName: "StreamMetrics", ClientStreams: true, Handler: p.known(ofNumbers, p.stream)}},
	}, p)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.accesslog.v3.AccessLogService", HandlerType: (*any)(nil), Metadata: "envoy/service/accesslog/v3/als.proto",
		Streams: []grpc.StreamDesc{{StreamName: "StreamAccessLogs", ClientStreams: true, Handler: p.known(ofLogs, p.logs)}},
	}, p)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err := server.Serve(&limited{Listener: listener, push: p})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// demanding asks for a certificate in each handshake, whatever it is to say otherwise.
func demanding(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.ClientAuth, config.MinVersion, config.NextProtos = tls.RequireAndVerifyClientCert, tls.VersionTLS12, []string{"h2"}
	// Whoever resumes a session keeps an identity that may have expired.
	config.SessionTicketsDisabled = true
	if ask := config.GetConfigForClient; ask != nil {
		config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			now, err := ask(hello)
			if err != nil || now == nil {
				return nil, errors.Join(errors.New("no certificate of the mesh yet"), err)
			}
			now = now.Clone()
			now.GetConfigForClient = nil
			return demanding(now), nil
		}
	}
	return config
}

// known has a function take the streams of one kind, of pods that are known and do not have too many. That is decided before anything is read.
func (p *Push) known(of kind, take func(in grpc.ServerStream, from *sender, pod *traffic.LocalPod) error) grpc.StreamHandler {
	return func(_ any, in grpc.ServerStream) error {
		connection, ok := peer.FromContext(in.Context())
		if !ok {
			return p.refuse(of, codes.PermissionDenied, errors.New("a connection without an address"))
		}
		address, ok := addressOf(connection.Addr)
		if !ok {
			return p.refuse(of, codes.PermissionDenied, errors.New("a connection that is none of IP"))
		}
		from, err := p.enter(address, of)
		if err != nil {
			return p.refuse(of, codes.ResourceExhausted, err)
		}
		defer p.leave(from, of)
		pod, err := p.identify(connection, address)
		if err != nil {
			return p.refuse(of, codes.PermissionDenied, err)
		}
		return take(in, from, pod)
	}
}

// refuse ends a stream.
func (p *Push) refuse(of kind, code codes.Code, err error) error {
	p.local.refuse(err)
	p.options.Log.Warn("a stream of "+string(of)+" is refused", "reason", err)
	return status.Error(code, err.Error())
}

func addressOf(from net.Addr) (netip.Addr, bool) {
	at, err := netip.ParseAddrPort(from.String())
	return at.Addr().Unmap(), err == nil
}

// identify is the pod that a stream is of. Texts of errors have nothing of the caller's but what was cleaned.
func (p *Push) identify(connection *peer.Peer, address netip.Addr) (*traffic.LocalPod, error) {
	pod, err := p.local.podAt(address)
	if err != nil {
		return nil, err
	}
	security, ok := connection.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil, fmt.Errorf("%s: a connection without TLS", address)
	}
	if err := isOf(pod, security.State.VerifiedChains); err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Proxy.Namespace, pod.Proxy.Pod, err)
	}
	if pod.Stats.Node == nil {
		return nil, fmt.Errorf("pod %s/%s: proxies of this kind of mesh do not send numbers", pod.Proxy.Namespace, pod.Proxy.Pod)
	}
	return pod, nil
}

// itself says whether a proxy reports as the pod that it is of.
func itself(pod *traffic.LocalPod, node string) error {
	namespace, name, ok := pod.Stats.Node(node)
	if !ok || namespace != pod.Proxy.Namespace || name != pod.Proxy.Pod {
		return fmt.Errorf("pod %s/%s: it reports as node %q; a proxy reports its own numbers only", pod.Proxy.Namespace, pod.Proxy.Pod, clip(snapshot.Clean(node)))
	}
	return nil
}

// isOf says why a certificate, verified by these chains, is not that of a pod; nil if it is.
func isOf(pod *traffic.LocalPod, chains [][]*x509.Certificate) error {
	want := fmt.Sprintf("/ns/%s/sa/%s", pod.Proxy.Namespace, pod.Account)
	has := identityOf(chains)
	if trust, path, _ := strings.Cut(has, "/"); trust == "" || "/"+path != want {
		return fmt.Errorf("its certificate has the identity %q, want one that ends with %s", clip(snapshot.Clean(has)), want)
	}
	return nil
}

// identityOf is TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT of a certificate; empty if it was not verified, or has no such identity, or more than one.
func identityOf(chains [][]*x509.Certificate) string {
	if len(chains) == 0 || len(chains[0]) == 0 {
		return ""
	}
	uris := chains[0][0].URIs
	if len(uris) != 1 || uris[0].Scheme != "spiffe" || uris[0].User != nil {
		return ""
	}
	return uris[0].Host + uris[0].Path
}
