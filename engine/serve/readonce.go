package serve

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// readTimeout bounds ReadOnce; clusters that do not answer are settled long before.
const readTimeout = 40 * time.Second

// firstTimeout bounds the first question to the management cluster.
const firstTimeout = 10 * time.Second

// ReadOnce reads the management cluster and every registered cluster once, as a server
// does, and writes nothing. A cluster that does not answer is in the Input, with
// the reason. Statuses and options are those that the last server wrote. Detour may be nil;
// so may observe, which makes an observer of the management plane that was looked at.
func ReadOnce(ctx context.Context, o Options, detour cluster.Detour, observe func(snapshot.Plane) *apply.Observer) (*snapshot.Input, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	// A Source would wait for a server that does not answer; who asks once wants to know.
	asking, done := context.WithTimeout(ctx, firstTimeout)
	missing, err := watch.MissingCRDs(asking, o.Management)
	done()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, watch.UnreadError(o.Management.Host, err)
	case len(missing) > 0:
		return nil, &watch.MissingCRDsError{Host: o.Management.Host, Names: missing}
	}
	id, err := lookUpPlaneID(ctx, o)
	if err != nil {
		return nil, err
	}
	options := o.clusters(id, nil, nil)
	options.Statuses, options.Detour = true, detour
	if observe != nil {
		options.Observer = observe(snapshot.Plane{Namespace: o.Namespace, ID: id})
	}
	clusters, err := NewClusters(options)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	source := clusters.Source
	group, running := errgroup.WithContext(bounded)
	group.Go(func() error { return clusters.Run(running) })
	var in *snapshot.Input
	var waiting string
	select {
	case <-source.Changed():
		in = source.Input()
	case <-running.Done():
		waiting = source.Waiting()
	}
	cancel()
	err = group.Wait()
	switch {
	case in != nil:
		return in, nil
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("management cluster %s: %s", o.Management.Host, snapshot.Sentences(waiting, source.NextStep()))
}
