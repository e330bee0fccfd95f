//go:build linux

package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// plane is the identity of the management plane.
const plane = "plane-1"

// hubSide is a hub and the Source that it fills, in this process, and the process with the agents.
type hubSide struct {
	testing.TB
	size    enginetest.Size
	source  *watch.Source
	configs []*rest.Config

	orders  io.Writer
	answers *json.Decoder
	// heap is what was in use before any agent came.
	heap float64
}

// known admits the agents that have a certificate of the root.
type known struct {
	hub.Agents
	roots pki.Bundle
}

func (k known) Admit(_ context.Context, shown []*x509.Certificate, _ string) (string, error) {
	return identity.AgentOf(shown, k.roots, plane, time.Now(), 0)
}

// newHubSide starts a hub, and a process with the agents, of which none has dialled yet. The management
// cluster is a real API server, on which nothing is registered.
func newHubSide(t testing.TB, management *rest.Config, size enginetest.Size) *hubSide {
	t.Helper()
	h := &hubSide{TB: t, size: size}
	log := slog.New(slog.DiscardHandler)
	source, err := watch.New(watch.Options{Management: management, PlaneID: plane, Log: log, Grace: time.Millisecond})
	require.NoError(t, err)
	h.source = source
	h.background(func(ctx context.Context) { _ = source.Run(ctx) })
	root, err := identity.NewRoot(rand.Reader, time.Now(), plane)
	require.NoError(t, err)
	roots := pki.NewBundle(root.Chain().Root())
	server := hub.New(hub.Options{Agents: known{roots: roots}, Plane: plane, Term: hub.Term{Epoch: 1}, Version: "bench", Log: log})
	spec := fleetSpec{Plane: plane, Size: size, Roots: roots.PEM()}
	for n := range size.Clusters {
		name := enginetest.Cluster(n)
		config, err := server.Add(source, name, "")
		require.NoError(t, err)
		h.configs = append(h.configs, config)
		spec.Agents = append(spec.Agents, newIdentity(t, root, name))
	}
	spec.Hub = h.serve(server, root, roots)
	h.startFleet(spec)
	h.heap = liveHeap()
	return h
}

func newIdentity(t testing.TB, root *pki.Authority, cluster string) agentSpec {
	t.Helper()
	key, err := identity.NewKey(rand.Reader)
	require.NoError(t, err)
	request, err := identity.Request(rand.Reader, key, plane, cluster)
	require.NoError(t, err)
	chain, err := identity.IssueAgent(rand.Reader, time.Now(), root, request, plane, cluster)
	require.NoError(t, err)
	text, err := key.PEM()
	require.NoError(t, err)
	return agentSpec{Chain: chain.PEM(), Key: text}
}

// serve serves the hub as meshctl serve does.
func (h *hubSide) serve(server *hub.Hub, root *pki.Authority, roots pki.Bundle) (address string) {
	h.Helper()
	key, err := identity.NewKey(rand.Reader)
	require.NoError(h, err)
	chain, err := identity.IssueHub(rand.Reader, time.Now(), root, key, plane, "hub")
	require.NoError(h, err)
	own := identity.Own{Chain: chain, Key: key, Roots: roots}
	s := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(identity.HubTLS(func() (identity.Own, error) { return own, nil }))),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
	)
	relayv1.RegisterRelayServer(s, server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(h, err)
	go func() { _ = s.Serve(listener) }()
	h.Cleanup(s.Stop)
	return listener.Addr().String()
}

func (h *hubSide) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	h.Cleanup(func() { cancel(); <-done })
}

func (h *hubSide) startFleet(spec fleetSpec) {
	h.Helper()
	raw, err := json.Marshal(spec)
	require.NoError(h, err)
	path := filepath.Join(h.TempDir(), "fleet.json")
	require.NoError(h, os.WriteFile(path, raw, 0o600))
	command := exec.Command(os.Args[0], "-test.run", "^TestAgents$", "-test.timeout", "0")
	command.Env = append(os.Environ(), fleetVariable+"="+path)
	in, err := command.StdinPipe()
	require.NoError(h, err)
	out, err := command.StderrPipe()
	require.NoError(h, err)
	require.NoError(h, command.Start())
	h.Cleanup(func() { _ = in.Close(); _ = command.Wait() })
	h.orders, h.answers = in, json.NewDecoder(out)
	h.order(order{Do: "idle"}) // it is there
}

// order has the agents do something.
func (h *hubSide) order(o order) report {
	h.Helper()
	answer := h.ask(o)
	require.Empty(h, answer.Error)
	return answer
}

// ask is order for any goroutine.
func (h *hubSide) ask(o order) (answer report) {
	cpu := cpuSeconds()
	defer func() { answer.HubCPU = cpuSeconds() - cpu }()
	raw, err := json.Marshal(o)
	if err == nil {
		_, err = h.orders.Write(append(raw, '\n'))
	}
	if err == nil {
		err = h.answers.Decode(&answer)
	}
	if err != nil {
		answer.Error = "the process with the agents has ended: " + err.Error()
	}
	return answer
}

// synced is how many clusters are read and up to date.
func (h *hubSide) synced() int {
	input := h.source.Input()
	if input == nil {
		return 0
	}
	n := 0
	for _, c := range input.Clusters {
		if c.Sync == snapshot.Synced {
			n++
		}
	}
	return n
}

// dial has all agents dial, and returns when the first and the last cluster were synced, in seconds.
func (h *hubSide) dial() (first, all float64, r report) {
	h.Helper()
	done := make(chan report, 1)
	began := time.Now()
	go func() { done <- h.ask(order{Do: "dial"}) }()
	for all == 0 {
		n := h.synced()
		if n > 0 && first == 0 {
			first = time.Since(began).Seconds()
		}
		if n == h.size.Clusters {
			all = time.Since(began).Seconds()
			break
		}
		select {
		case r := <-done:
			require.Empty(h, r.Error)
			done <- r
			time.Sleep(20 * time.Millisecond)
		case <-time.After(20 * time.Millisecond):
		}
		require.Less(h, time.Since(began), 10*time.Minute, "%d of %d clusters are synced", n, h.size.Clusters)
	}
	return first, all, <-done
}

// upLatency is how long edits in a cluster take until an Input has them, in milliseconds.
func (h *hubSide) upLatency(agent, edits int) (p50 float64) {
	h.Helper()
	name := enginetest.Cluster(agent)
	done := make(chan struct{})
	go func() { defer close(done); h.ask(order{Do: "edit", Agent: agent, Count: edits}) }()
	var took []float64
	last := ""
	look := func() {
		input := h.source.Input()
		at, _ := slices.BinarySearchFunc(input.Clusters, name, func(c *snapshot.Cluster, name string) int { return strings.Compare(c.Name, name) })
		for _, s := range input.Clusters[at].Services {
			if when := s.Labels[editedLabel]; when != "" && when != last {
				last = when
				nanoseconds, err := strconv.ParseInt(when, 10, 64)
				require.NoError(h, err)
				took = append(took, time.Since(time.Unix(0, nanoseconds)).Seconds()*1000)
			}
		}
	}
	for {
		select {
		case <-h.source.Changed():
			look()
		case <-done:
			look()
			require.NotEmpty(h, took)
			return percentile(took, 0.5)
		}
	}
}

// write sends an apply through an agent, of which nothing is written, and returns how long that took, in milliseconds.
func (h *hubSide) write(agent int, body []byte) float64 {
	began := time.Now()
	config := h.configs[agent]
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPatch,
		config.Host+"/apis/networking.istio.io/v1/namespaces/istio-system/virtualservices/one?fieldManager=bench", bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
		var response *http.Response
		if response, err = config.Transport.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
	if err != nil {
		h.Errorf("cluster %s: %v", enginetest.Cluster(agent), err)
	}
	return time.Since(began).Seconds() * 1000
}

// writes is write for some agents in turn, many times.
func (h *hubSide) writes(agents, times int) []float64 {
	body := make([]byte, 1000)
	var out []float64
	for n := range times {
		out = append(out, h.write(n%agents, body))
	}
	return out
}

// writeAll is how long one write to each of some clusters takes, all at once, in milliseconds.
func (h *hubSide) writeAll(agents int) float64 {
	body := make([]byte, 1000)
	began := time.Now()
	var group sync.WaitGroup
	for n := range agents {
		group.Go(func() { h.write(n, body) })
	}
	group.Wait()
	return time.Since(began).Seconds() * 1000
}

func percentile(list []float64, p float64) float64 {
	slices.Sort(list)
	return list[min(len(list)-1, int(p*float64(len(list))))]
}

// watchMemory notes the peak of the resident memory until it is stopped.
func (h *hubSide) watchMemory() (stop func() (peak float64)) {
	debug.FreeOSMemory()
	ctx, cancel := context.WithCancel(context.Background())
	done, peak := make(chan struct{}), 0.0
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			peak = max(peak, resident(h))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() float64 { cancel(); <-done; return peak }
}

// cpuSeconds is what this process has used.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return math.NaN()
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// resident is the resident memory of this process, in bytes.
func resident(t testing.TB) float64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Error(err)
		return 0
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(raw))[1], 64)
	if err != nil {
		t.Error(err)
	}
	return pages * float64(os.Getpagesize())
}

// liveHeap is how many bytes are in use after a collection.
func liveHeap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// management is an API server with the CRDs.
func management(t testing.TB) *rest.Config {
	t.Helper()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = registration.InstallCRDs(context.Background(), config)
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, config, snapshot.DefaultNamespace)
	return config
}

// figure is a line of the table.
type figure struct{ what, aim, is string }

type table []figure

func (l *table) add(what, aim, format string, args ...any) {
	*l = append(*l, figure{what, aim, fmt.Sprintf(format, args...)})
}

func (l *table) String() string {
	var out strings.Builder
	for _, f := range *l {
		fmt.Fprintf(&out, "\n%-58s %-22s %s", f.what, f.is, f.aim)
	}
	return out.String()
}
