package interview

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/wizards"
)

// looksAtOnce is high because looks wait more than they work.
const looksAtOnce = 32

// Contexts lists the contexts of a kubeconfig and looks at each; namespace is
// where registrations would be. One that leads nowhere is no error.
func (f *Flags) Contexts(ctx context.Context, factory *cmdutil.Factory, kubeconfig, namespace string) ([]wizards.Context, error) {
	names, current, err := factory.Contexts(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot list clusters: %w", err)
	}
	progress := f.Progress(factory.Streams)
	progress.Start(fmt.Sprintf("Checking the contexts of the kubeconfig (%d)", len(names)))
	found := make([]wizards.Context, len(names))
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for i, name := range names {
		group.Go(func() error {
			found[i] = look(ctx, factory, kubeconfig, name, namespace)
			found[i].Current = name == current
			return nil
		})
	}
	_ = group.Wait() // errors are Problems
	progress.End(ctx.Err())
	return found, ctx.Err()
}

func look(ctx context.Context, factory *cmdutil.Factory, kubeconfig, name, namespace string) wizards.Context {
	c := wizards.Context{Name: name}
	config, err := factory.Config(kubeconfig, name)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Server = config.Host
	seen, err := cluster.Inspect(ctx, cluster.InspectOptions{Config: config, Context: name, MgmtNamespace: namespace})
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Version, c.UID, c.Members = seen.Version, seen.UID, seen.Members
	return c
}
