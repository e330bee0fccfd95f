package demo

import (
	"context"
	"errors"
	"fmt"
)

// Down ends every process of the demo in opts.Dir and removes its folder. It
// returns ErrNotRunning if there is none. What could not be ended keeps its
// folder, so that Down can be tried again.
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
		return fmt.Errorf("demo: process %d is bringing it up; interrupt that first: it cleans up by itself", s.Owner.PID)
	}
	opts.Runtime = s.Runtime
	runtime, err := newRuntime(opts, nil)
	if err != nil {
		return err
	}
	opts.Progress.Start("Ending the demo in " + opts.Dir)
	// The management plane first: it would try to mend what disappears.
	err = errors.Join(s.Serve.Kill(ctx), stopClusters(ctx, runtime, s.Clusters))
	if err == nil {
		err = remove(opts.Dir)
	}
	opts.Progress.End(err)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}
