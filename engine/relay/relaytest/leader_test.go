package relaytest

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// byUID takes an agent for that of the cluster that it names as its UID.
type byUID struct{ hub.Agents }

func (byUID) Admit(_ context.Context, _ []*x509.Certificate, uid string) (string, error) {
	return uid, nil
}

// leads starts the hub of a leader for clusters, which compares one of them at a time, and returns its address.
func (w *world) leads(epoch uint64, clusters []string) (source *watch.Source, address string) {
	w.t.Helper()
	h := hub.New(hub.Options{
		Agents: byUID{}, Plane: w.plane.ID, Term: hub.Term{Epoch: epoch, Since: time.Now()}, Version: "test", Grace: time.Second, Turns: 1, Log: w.log,
	})
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, h)
	listener := listen(w.t)
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(server.Stop)
	source = w.source()
	for _, cluster := range clusters {
		_, err := h.Add(source, cluster, "")
		require.NoError(w.t, err)
	}
	return source, listener.Addr().String()
}

// synced is how many clusters a source has read.
func synced(s *watch.Source) int {
	n := 0
	if in := s.Input(); in != nil {
		for _, c := range in.Clusters {
			if c.Sync == snapshot.Synced {
				n++
			}
		}
	}
	return n
}

// TestTheLeaderChangesWhileManyAreCompared: agents whose comparison was broken off, those that had waited for it, and those that had been
// compared, are all compared by the next leader; and again, as their connections break there.
func TestTheLeaderChangesWhileManyAreCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill() // a comparison takes a while
	var clusters []string
	for n := range 6 {
		clusters = append(clusters, fmt.Sprint("c", n))
	}
	first, address := w.leads(1, clusters)
	slow := 200_000
	w.proxy.set(func(p *proxy) { p.target, p.slow = address, slow })
	for _, cluster := range clusters {
		a, err := agent.New(agent.Options{
			Cluster: cluster, UID: cluster, Plane: w.plane, Config: w.west, Hub: w.proxy.address(), Version: "test", Log: slog.New(slog.DiscardHandler),
			Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, Redial: 10 * time.Millisecond, RedialMost: 200 * time.Millisecond,
		})
		require.NoError(t, err)
		w.run(a.Run)
	}
	waittest.Until(t, "the first one was compared", func() bool { return synced(first) > 0 })
	second, address := w.leads(2, clusters)
	w.proxy.set(func(p *proxy) { p.target = address; p.close() })
	changed := time.Now()
	assert.Less(t, synced(first), len(clusters), "not all were compared before")

	waittest.Until(t, "the next leader has compared one", func() bool { return synced(second) > 0 })
	w.proxy.set(func(p *proxy) { p.slow = 0; p.close() })
	waittest.Until(t, "all are compared", func() bool { return synced(second) == len(clusters) })
	t.Logf("all are compared %s after the leader changed", time.Since(changed).Round(time.Millisecond))
	waittest.Until(t, "all have what there is", func() bool {
		direct := clusterOf(w.direct)
		for _, c := range second.Input().Clusters {
			if c.Sync != snapshot.Synced || len(c.Services) != len(direct.Services) || len(c.Namespaces) != len(direct.Namespaces) {
				return false
			}
		}
		return true
	})
}
