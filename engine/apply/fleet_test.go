package apply_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// fleet is clusters as a Sink or an Observer has them.
type fleet struct {
	t      testing.TB
	plane  snapshot.Plane
	source *watch.Source
	// end ends what was started, and waits for it.
	end []func()
}

// newFleet ends with the test, or when stop is called.
func newFleet(t testing.TB, plane snapshot.Plane) *fleet {
	t.Helper()
	f := &fleet{t: t, plane: plane}
	f.source = f.newSource(&rest.Config{Host: "https://127.0.0.1:1"})
	f.end = append(f.end, func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = f.source.Run(ended) // ends what Set has started
	})
	return f
}

func (f *fleet) newSource(management *rest.Config) *watch.Source {
	f.t.Helper()
	source, err := watch.New(watch.Options{Management: management, Namespace: f.plane.Namespace, PlaneID: f.plane.ID, Log: slog.New(slog.DiscardHandler)})
	require.NoError(f.t, err)
	return source
}

// link connects a cluster, or replaces its connection.
func (f *fleet) link(cluster string, config *rest.Config) *mirror.Link {
	f.t.Helper()
	if cluster != "" {
		f.source.Set(cluster, "", config, nil)
		return f.source.Link(cluster)
	}
	source := f.newSource(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = source.Run(ctx) // a cluster without the types is one that never answers
	}()
	f.end = append(f.end, func() { cancel(); <-done })
	return source.Link("")
}

func (f *fleet) stop() {
	for _, end := range f.end {
		end()
	}
	f.end = nil
}

// sinkOf is a Sink with the clusters that it writes to.
type sinkOf struct {
	*apply.Sink
	*fleet
}

// Set connects a cluster, or replaces its connection.
func (s *sinkOf) Set(cluster string, config *rest.Config) {
	s.t.Helper()
	s.Sink.Set(cluster, s.link(cluster, config))
}

// Remove forgets a cluster.
func (s *sinkOf) Remove(cluster string) {
	s.source.Remove(cluster)
	s.Sink.Remove(cluster)
}

// Renewed says that a cluster has another credential.
func (s *sinkOf) Renewed(cluster string) {
	s.source.Renewed(cluster)
	s.Sink.Renewed(cluster)
}
