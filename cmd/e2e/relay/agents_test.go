//go:build linux

package relay

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// fleetSpec is what the process with the agents is told at its start.
type fleetSpec struct {
	Hub, Plane string
	Size       enginetest.Size
	Roots      []byte
	Agents     []agentSpec
}

// agentSpec is the identity of an agent: its certificate and key, in PEM.
type agentSpec struct{ Chain, Key []byte }

// order is what the process is told later, one a line, and report its answer.
type order struct {
	Do string
	// Agent is the one that it is about, and Count how often, or for how many seconds.
	Agent, Count int
}

type report struct {
	// Seconds is how long it took, and Sent and Received what passed each agent's connection meanwhile, in
	// bytes on the average. MostSent is of the agent that sent most.
	Seconds float64
	// CPU is what all agents together used, in seconds, and HubCPU what the hub did meanwhile.
	CPU, HubCPU float64
	// Failed is how often agents have dialled again since the start.
	Failed                   int64
	Sent, Received, MostSent float64
	Error                    string
}

// fleetVariable names the file with the fleetSpec.
const fleetVariable = "MESHCTL_BENCH_FLEET"

// TestAgents is no test, but the process in which the agents of BenchmarkRelay are, so that what the hub
// uses can be told apart.
func TestAgents(t *testing.T) {
	path := os.Getenv(fleetVariable)
	if path == "" {
		t.Skip("it is started by BenchmarkRelay")
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var spec fleetSpec
	require.NoError(t, json.Unmarshal(raw, &spec))
	f := newFleet(t, spec)
	answers := json.NewEncoder(os.Stderr)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var o order
		require.NoError(t, json.Unmarshal(lines.Bytes(), &o))
		require.NoError(t, answers.Encode(f.carryOut(o)))
	}
}

// fleet are agents that have no API servers: they report clusters of a synthetic world.
type fleet struct {
	spec   fleetSpec
	agents []*fleetAgent
}

func newFleet(t *testing.T, spec fleetSpec) *fleet {
	t.Helper()
	roots, err := pki.ReadBundle(spec.Roots)
	require.NoError(t, err)
	f := &fleet{spec: spec}
	for n, a := range spec.Agents {
		var chain pki.Chain // in its order, which a bundle does not keep
		for block, rest := pem.Decode(a.Chain); block != nil; block, rest = pem.Decode(rest) {
			cert, err := x509.ParseCertificate(block.Bytes)
			require.NoError(t, err)
			chain = append(chain, cert)
		}
		key, err := pki.ReadKey(a.Key)
		require.NoError(t, err)
		own := identity.Own{Chain: chain, Key: key, Roots: roots}
		f.agents = append(f.agents, newFleetAgent(spec, own, enginetest.NumberedCluster(n, spec.Size)))
	}
	return f
}

func (f *fleet) carryOut(o order) report {
	before := make([][2]int64, len(f.agents))
	for n, a := range f.agents {
		before[n] = [2]int64{a.sent.Load(), a.received.Load()}
	}
	began, cpu := time.Now(), cpuSeconds()
	err := f.do(o)
	out := report{Seconds: time.Since(began).Seconds(), CPU: cpuSeconds() - cpu}
	if err != nil {
		out.Error = err.Error()
	}
	for n, a := range f.agents {
		sent := float64(a.sent.Load() - before[n][0])
		out.Sent += sent / float64(len(f.agents))
		out.Received += float64(a.received.Load()-before[n][1]) / float64(len(f.agents))
		out.MostSent = max(out.MostSent, sent)
		out.Failed += a.failed.Load()
	}
	return out
}

func (f *fleet) do(o order) error {
	switch o.Do {
	case "dial":
		return f.each(func(a *fleetAgent) error { return a.dial() })
	case "redial":
		for _, a := range f.agents {
			a.hangUp()
		}
		return f.each(func(a *fleetAgent) error { return a.dial() })
	case "idle":
		time.Sleep(time.Duration(o.Count) * time.Second)
	case "edit":
		for range o.Count {
			if err := f.agents[o.Agent].edit(); err != nil {
				return err
			}
		}
	case "churn":
		for range o.Count {
			if err := f.agents[o.Agent].replacePod(); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
	case "slow":
		f.agents[o.Agent].slow.Store(int64(o.Count))
	default:
		return fmt.Errorf("%q is no order", o.Do)
	}
	return nil
}

func (f *fleet) each(do func(*fleetAgent) error) error {
	errs := make([]error, len(f.agents))
	var group sync.WaitGroup
	for n, a := range f.agents {
		group.Go(func() { errs[n] = do(a) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// fleetAgent is one agent. Its frames, streams and certificates are real; there is no cluster.
type fleetAgent struct {
	spec   fleetSpec
	own    identity.Own
	kinds  []string
	signal chan struct{}
	// sent and received are bytes of all its connections; slow is how many it reads in a second, all if 0.
	sent, received, slow atomic.Int64
	// failed is how often it had to dial again.
	failed atomic.Int64

	mu      sync.Mutex
	cluster *snapshot.Cluster
	sender  *relay.Sender
	// held is how many kinds the hub has told about in this stream, and settled is closed once it has everything.
	held    int
	settled chan struct{}
	hangUp  func()
}

func newFleetAgent(spec fleetSpec, own identity.Own, cluster *snapshot.Cluster) *fleetAgent {
	a := &fleetAgent{spec: spec, own: own, kinds: relay.Reported(), cluster: cluster, signal: make(chan struct{}, 1), hangUp: func() {}}
	a.sender = relay.NewSender(a, a.kinds...)
	for kind, list := range cluster.Lists {
		for i := range list.Len() {
			a.sender.Changed(relay.KindName(kind), keyOf(list.At(i)))
		}
	}
	for _, kind := range a.kinds {
		a.sender.SetComplete(kind, true)
	}
	return a
}

func keyOf(o snapshot.APIObject) relay.Key {
	return relay.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Object implements relay.Contents, under the lock.
func (a *fleetAgent) Object(name string, of relay.Key) ([]byte, bool) {
	kind, read := relay.KindNamed(name)
	if !read {
		return nil, false // nothing was written yet
	}
	o := a.cluster.List(kind).Find(of.Namespace, of.Name)
	if o == nil {
		return nil, false
	}
	raw, err := relay.Encode(o)
	return raw, err == nil
}

// Version implements relay.Contents.
func (a *fleetAgent) Version(string) uint64 { return 0 }

// dial connects, and returns once the hub has everything. Like an agent, it dials again where it
// fails, as where a busy hub does not answer in time.
func (a *fleetAgent) dial() error {
	const attempts = 10
	for n := 1; ; n++ {
		err := a.connect()
		if err == nil || n == attempts {
			return err
		}
		a.failed.Add(1)
		time.Sleep(kube.Backoff(time.Second, time.Minute, n))
	}
}

func (a *fleetAgent) connect() error {
	config := identity.AgentTLS(func() (identity.Own, error) { return a.own, nil }, "hub", a.spec.Plane, time.Now)
	conn, err := grpc.NewClient(a.spec.Hub, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			return &counted{c, a}, err
		}))
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(context.Background())
	settled := make(chan struct{})
	a.mu.Lock()
	a.sender.Begin()
	a.held, a.settled = 0, settled
	a.hangUp = func() { end(errors.New("the agent hangs up")); _ = conn.Close() }
	a.mu.Unlock()
	client := relayv1.NewRelayClient(conn)
	go func() { end(a.report(ctx, client)) }()
	go func() { end(a.exchange(ctx, client)) }()
	go func() { end(a.desire(ctx, client)) }()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *fleetAgent) hello() *relayv1.Hello {
	return &relayv1.Hello{OldestProtocol: relay.OldestProtocol, NewestProtocol: relay.Protocol, Version: "bench", Incarnation: "1", ClusterUid: "uid"}
}

func (a *fleetAgent) report(ctx context.Context, client relayv1.RelayClient) error {
	in, err := client.Report(ctx)
	if err != nil {
		return err
	}
	if err := in.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: a.hello()}}); err != nil {
		return err
	}
	if _, err := in.Recv(); err != nil {
		return err
	}
	if err := in.Send(&relayv1.Data{Frame: &relayv1.Data_Cluster{Cluster: &relayv1.ClusterState{Synced: true}}}); err != nil {
		return err
	}
	return run(ctx, a.signal, a.next, func() *relayv1.Data {
		return &relayv1.Data{Frame: &relayv1.Data_Beat{Beat: &relayv1.Beat{}}}
	}, in.Send, in.Recv, a.receive)
}

func run[Out, In any](ctx context.Context, signal chan struct{}, next func() (*Out, bool), beat func() *Out, send func(*Out) error, receive func() (*In, error), take func(*In) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go pump.Receive(pump.Times{}, receive, take, end)
	return pump.Cause(ctx, pump.Run(ctx, pump.Out[*Out]{Signal: signal, Next: next, Beat: beat, Send: send}))
}

func (a *fleetAgent) next() (*relayv1.Data, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	frame := a.sender.Next()
	if frame.GetSame() != nil {
		a.held = len(a.kinds)
	}
	if frame == nil && a.held >= len(a.kinds) && a.sender.Unacked() == 0 && a.settled != nil {
		close(a.settled)
		a.settled = nil
	}
	return frame, frame != nil
}

func (a *fleetAgent) receive(f *relayv1.Feedback) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.GetHeld() != nil {
		a.held++
	}
	pump.Signal(a.signal)
	return a.sender.Receive(f)
}

// exchange says that every request was carried out.
func (a *fleetAgent) exchange(ctx context.Context, client relayv1.RelayClient) error {
	in, err := client.Exchange(ctx)
	if err != nil {
		return err
	}
	if err := in.Send(&relayv1.Answer{Hello: a.hello()}); err != nil {
		return err
	}
	if _, err := in.Recv(); err != nil {
		return err
	}
	answers, signal := make(chan *relayv1.Answer, 1024), make(chan struct{}, 1)
	return run(ctx, signal, func() (*relayv1.Answer, bool) {
		select {
		case answer := <-answers:
			return answer, true
		default:
			return nil, false
		}
	}, func() *relayv1.Answer { return &relayv1.Answer{Beat: &relayv1.Beat{}} }, in.Send, in.Recv, func(r *relayv1.Request) error {
		if r.GetId() != 0 {
			answers <- &relayv1.Answer{Id: r.GetId(), Status: 200, ContentType: "application/json", Body: []byte("{}")}
			pump.Signal(signal)
		}
		return nil
	})
}

func (a *fleetAgent) desire(ctx context.Context, client relayv1.RelayClient) error {
	in, err := client.Desire(ctx)
	if err != nil {
		return err
	}
	if err := in.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: a.hello()}}); err != nil {
		return err
	}
	beat := func() *relayv1.Feedback {
		return &relayv1.Feedback{Frame: &relayv1.Feedback_Beat{Beat: &relayv1.Beat{}}}
	}
	return run(ctx, make(chan struct{}), func() (*relayv1.Feedback, bool) { return nil, false }, beat, in.Send, in.Recv,
		func(*relayv1.Data) error { return nil })
}

// editedLabel is the label of a Service that says when it was edited, in nanoseconds.
const editedLabel = "edited"

// edit changes the first service, and returns once the hub has it.
func (a *fleetAgent) edit() error {
	service := a.cluster.Services[0].DeepCopy()
	service.Labels = map[string]string{editedLabel: strconv.FormatInt(time.Now().UnixNano(), 10)}
	return a.change(service)
}

// replacePod changes the address of the last pod, as if another one had come for it.
func (a *fleetAgent) replacePod() error {
	now := time.Now().UnixNano()
	address := fmt.Sprintf("10.255.%d.%d", now/250%250, now%250)
	pod, slice := a.cluster.Pods[len(a.cluster.Pods)-1].DeepCopy(), a.cluster.EndpointSlices[len(a.cluster.EndpointSlices)-1].DeepCopy()
	pod.Status.PodIP = address
	slice.Endpoints[len(slice.Endpoints)-1].Addresses = []string{address}
	return a.change(pod, slice)
}

func (a *fleetAgent) change(objects ...snapshot.APIObject) error {
	settled := make(chan struct{})
	a.mu.Lock()
	in := &snapshot.Input{Management: &snapshot.Management{}, Clusters: []*snapshot.Cluster{a.cluster}}
	for _, o := range objects {
		var err error
		if in, err = in.With(a.cluster.Name, o); err != nil {
			a.mu.Unlock()
			return err
		}
		kind, _ := snapshot.KindOfObject(o)
		a.sender.Changed(relay.KindName(kind), keyOf(o))
	}
	a.cluster, a.settled = in.Clusters[0], settled
	a.mu.Unlock()
	pump.Signal(a.signal)
	<-settled
	return nil
}

// counted is a connection of an agent.
type counted struct {
	net.Conn
	of *fleetAgent
}

func (c *counted) Read(p []byte) (int, error) {
	if slow := c.of.slow.Load(); slow > 0 {
		p = p[:min(int64(len(p)), max(1, slow/10))]
		time.Sleep(100 * time.Millisecond)
	}
	n, err := c.Conn.Read(p)
	c.of.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.of.sent.Add(int64(n))
	return n, err
}

var _ io.ReadWriter = &counted{}
