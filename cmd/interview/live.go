package interview

import (
	"context"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/load"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Discovered reads what the management plane discovered. If it has not discovered
// anything yet, Discovered reads the registered clusters instead.
func (f *Flags) Discovered(ctx context.Context, s *cmdutil.Streams, m load.Management) (*snapshot.Input, error) {
	reading, err := m.Stored(ctx)
	if err != nil {
		return nil, err
	}
	stored := reading.Input.Management
	if len(stored.KubernetesClusters) == 0 || len(stored.Meshes)+len(stored.Destinations) > 0 {
		return reading.Input, nil
	}
	return f.ReadClusters(ctx, s, m)
}

// ReadClusters reads the registered clusters themselves.
func (f *Flags) ReadClusters(ctx context.Context, s *cmdutil.Streams, m load.Management) (*snapshot.Input, error) {
	reading, err := m.ClustersWith(ctx, s, f.Progress(s))
	if err != nil {
		return nil, err
	}
	return reading.Input, nil
}
