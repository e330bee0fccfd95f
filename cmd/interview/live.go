package interview

import (
	"context"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Discovered reads what the management plane discovered. If it has not discovered
// anything yet, Discovered reads the registered clusters instead.
func (f *Flags) Discovered(ctx context.Context, s *cmdutil.Streams, m reading.Management) (*snapshot.Input, error) {
	read, err := m.Stored(ctx)
	if err != nil {
		return nil, err
	}
	stored := read.Input.Management
	if len(stored.KubernetesClusters) == 0 || len(stored.Meshes)+len(stored.Destinations) > 0 {
		return read.Input, nil
	}
	return f.ReadClusters(ctx, s, m)
}

// ReadClusters reads the registered clusters themselves.
func (f *Flags) ReadClusters(ctx context.Context, s *cmdutil.Streams, m reading.Management) (*snapshot.Input, error) {
	read, err := cmdutil.ReadClusters(ctx, s, f.Progress(s), m.Clusters)
	if err != nil {
		return nil, err
	}
	return read.Input, nil
}
