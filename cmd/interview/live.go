package interview

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Discovered reads what was discovered. Where the management plane has not
// worked yet, the registered clusters are looked at instead.
func (f *Flags) Discovered(ctx context.Context, s *cmdutil.Streams, config *rest.Config, namespace string) (*snapshot.Input, error) {
	in, err := watch.ReadOnce(ctx, config, namespace)
	if err != nil {
		return nil, err
	}
	m := in.Management
	if len(m.KubernetesClusters) == 0 || len(m.Meshes)+len(m.Destinations) > 0 {
		return in, nil
	}
	return f.Look(ctx, s, config, namespace)
}

// Look reads the registered clusters themselves.
func (f *Flags) Look(ctx context.Context, s *cmdutil.Streams, config *rest.Config, namespace string) (*snapshot.Input, error) {
	// What client-go says while it is being stopped is for nobody.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	progress := f.Progress(s)
	progress.Start("Looking into the registered clusters")
	in, err := serve.Look(ctx, serve.Options{Management: config, Namespace: namespace, Log: slog.New(slog.DiscardHandler), UserAgent: config.UserAgent})
	progress.End(err)
	return in, err
}
