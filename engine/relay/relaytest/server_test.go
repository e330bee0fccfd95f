package relaytest

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// policy is what wants the certificates.
var policy = snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: "mesh"}

// server writes certificates to west, through the agent, as serve does: not while it is frozen.
type server struct {
	w    *world
	sink *apply.Sink
	// stop ends it.
	stop func()

	mu     sync.Mutex
	wanted map[string]string
	// derive is what is wanted of a cluster as it was read, which replaces wanted; nil if that is set.
	derive func(*snapshot.Cluster) map[string]string
}

func (w *world) server() *server {
	s := &server{w: w, sink: apply.New(apply.Options{
		Namespace: w.plane.Namespace, PlaneID: w.plane.ID, Log: slog.New(slog.DiscardHandler), Witness: w.witness,
	}), wanted: map[string]string{}}
	stopSink := w.run(s.sink.Run)
	s.sink.Set("west", w.relayed.Link("west"))
	source := w.relayed
	stopLoop := w.run(func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-source.Changed():
				s.apply()
			}
		}
	})
	s.stop = func() { stopLoop(); stopSink() }
	return s
}

// removals counts certificates of west that are deleted from now on.
func (w *world) removals() func() int {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.west)
	require.NoError(w.t, err)
	events, err := client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Watch(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(events.Stop)
	var count atomic.Int64
	w.run(func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-events.ResultChan():
				if e.Type == "DELETED" {
					count.Add(1)
				}
			}
		}
	})
	return func() int { return int(count.Load()) }
}

// witness is that of a cluster that is reached through its agent.
func (w *world) witness(cluster string) apply.Witness {
	if cluster == "" {
		return nil
	}
	return w.hub.Standing(cluster)
}

func (s *server) want(name, org string) {
	s.mu.Lock()
	if org == "" {
		delete(s.wanted, name)
	} else {
		s.wanted[name] = org
	}
	s.mu.Unlock()
	s.apply()
}

func (s *server) apply() {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &snapshot.Output{Clusters: []string{"west"}}
	west := clusterOf(s.w.relayed)
	if west == nil || west.Frozen() {
		out.Frozen = out.Clusters
	}
	if s.derive != nil && west != nil {
		s.wanted = s.derive(west)
	}
	var parts []*snapshot.Part
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		parts = append(parts, &snapshot.Part{Key: name, Objects: []*snapshot.Object{{
			Ref:     snapshot.Ref{Kind: snapshot.IssuedCertificate, Cluster: "west", Namespace: s.w.plane.Namespace, Name: name},
			Content: &snapshot.Content{Spec: certificatesv1.IssuedCertificateSpec{Org: s.wanted[name]}, Parents: []snapshot.Ref{policy}},
		}}})
	}
	out.Parts = snapshot.ListOf(parts)
	s.sink.Apply(out)
}

// written waits until what is wanted stands in west, and nothing else.
func (s *server) written() {
	s.w.t.Helper()
	waittest.Until(s.w.t, "what is wanted stands", func() bool {
		west := clusterOf(s.w.direct)
		if west == nil {
			return false
		}
		found := map[string]string{}
		for _, c := range west.IssuedCertificates {
			found[c.Name] = c.Spec.Org
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return maps.Equal(found, s.wanted)
	})
}
