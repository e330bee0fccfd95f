package demo

import (
	"context"
	"errors"
	"fmt"
)

// Down stops every process of the demo in opts.Dir and removes its folder. It
// returns ErrNotRunning if there is none. If a process cannot be stopped, its
// folder stays, so that Down can be repeated.
func Down(ctx context.Context, opts Options) error {
	opts, err := opts.complete()
	if err != nil {
		return err
	}
	s, err := existing(opts)
	if err != nil {
		return err
	}
	if s.busy() {
		return fmt.Errorf("demo: process %d is still starting it; interrupt that process, which then cleans up", s.Owner.PID)
	}
	opts.Runtime = s.Runtime
	runtime, err := newRuntime(opts, nil)
	if err != nil {
		return err
	}
	opts.Progress.Start("Stopping the demo in " + opts.Dir)
	// The management plane first, with its agents: it would try to restore what disappears.
	err = errors.Join(s.killServing(ctx), s.Proxies.Kill(ctx), stopClusters(ctx, runtime, s.Clusters))
	if err == nil {
		err = remove(opts.Dir)
	}
	opts.Progress.End(err)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}
