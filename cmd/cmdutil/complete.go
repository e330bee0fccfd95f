package cmdutil

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// completionTimeout is how long a shell may wait for names.
const completionTimeout = time.Second

// complete reads what the flags name for the shell. After a mistake, or if the cluster is slow, it
// returns nil. It prints nothing: the text would appear in the line that the user types.
func (s *Source) complete(ctx context.Context) *explain.Index {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	quiet, factory := *s, *s.Factory
	factory.Streams, _, _, _ = TestStreams()
	quiet.Factory = &factory
	read, err := quiet.Read(ctx, factory.Streams)
	if err != nil {
		return nil
	}
	return read.Index(nil)
}

// Names lists the names of all objects of some kinds for the shell.
func (s *Source) Names(ctx context.Context, kinds ...snapshot.Kind) []string {
	index := s.complete(ctx)
	if index == nil {
		return nil
	}
	var names []string
	for _, kind := range kinds {
		for _, ref := range index.Refs(kind) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// Services lists the services as name.namespace.cluster, for the shell.
func (s *Source) Services(ctx context.Context) []string {
	index := s.complete(ctx)
	if index == nil {
		return nil
	}
	var names []string
	for _, ref := range index.Refs(snapshot.Destination) {
		if called := index.Called(ref); len(called) > 0 {
			names = append(names, called[len(called)-1])
		}
	}
	return names
}

// Clusters lists the clusters, for the shell.
func (s *Source) Clusters(ctx context.Context) []string {
	return s.Names(ctx, snapshot.KubernetesCluster)
}
