package interview

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/wizards"
)

// maxInspections bounds how many clusters are inspected at a time. It is high
// because an inspection mostly waits.
const maxInspections = 32

// Contexts lists the contexts of a kubeconfig and inspects the cluster of each;
// namespace is where registrations would be stored. A context that cannot be
// used is not an error: its Problem says why.
func (f *Flags) Contexts(ctx context.Context, factory *cmdutil.Factory, kubeconfig, namespace string) ([]wizards.Context, error) {
	names, current, err := factory.Contexts(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot list clusters: %w", err)
	}
	progress := f.Progress(factory.Streams)
	progress.Start(fmt.Sprintf("Checking the contexts of the kubeconfig (%d)", len(names)))
	found := make([]wizards.Context, len(names))
	var group errgroup.Group
	group.SetLimit(maxInspections)
	for i, name := range names {
		group.Go(func() error {
			found[i] = inspect(ctx, factory, kubeconfig, name, namespace)
			found[i].Current = name == current
			return nil
		})
	}
	_ = group.Wait() // a failed inspection is a Problem, not an error
	progress.End(ctx.Err())
	return found, ctx.Err()
}

func inspect(ctx context.Context, factory *cmdutil.Factory, kubeconfig, name, namespace string) wizards.Context {
	c := wizards.Context{Name: name}
	config, err := factory.Config(kubeconfig, name)
	if err != nil {
		c.Problem = kube.Text(err)
		return c
	}
	c.Server = config.Host
	seen, err := registration.Inspect(ctx, registration.InspectOptions{Config: config, Context: name, MgmtNamespace: namespace})
	if err != nil {
		c.Problem = kube.Text(err)
		return c
	}
	c.Version, c.UID, c.Members = seen.Version, seen.UID, seen.Members
	return c
}
