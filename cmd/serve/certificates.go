package serve

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/certs/issuer"
	"github.com/meshctl/meshctl/certs/roots"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/serve"
)

// certificates keeps the roots of VirtualMeshes and signs the requests of agents, beside the
// translation, which knows nothing of keys.
func certificates(ctx context.Context, t serve.LeaderContext) error {
	store, err := roots.New(roots.Options{
		Management: t.Management, Namespace: t.Namespace, PlaneID: t.PlaneID, State: t.State, SetRoots: t.SetRoots, Log: t.Log,
	})
	if err != nil {
		return err
	}
	signer := issuer.New(issuer.Options{Roots: store, State: t.State, Clusters: t.Clusters, Log: t.Log, Metrics: t.Metrics})
	toStore, toSigner := make(chan struct{}, 1), make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kube.Catch(func() { store.Run(ctx, toStore) }) })
	group.Go(func() error { return kube.Catch(func() { signer.Run(ctx, toSigner) }) })
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-t.Changed:
			}
			for _, to := range []chan<- struct{}{toStore, toSigner} {
				select {
				case to <- struct{}{}:
				default: // it has a signal already
				}
			}
		}
	})
	return group.Wait()
}
