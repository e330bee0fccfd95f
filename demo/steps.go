package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cleanUpTimeout bounds the cleanup; to kill a process takes milliseconds.
const cleanUpTimeout = 2 * time.Minute

// step is one line of the progress of a demo.
type step struct {
	title string
	run   func(context.Context) error
	// undo reverts what run did, completely or not; nil if there is nothing to
	// revert. Its context does not end when the demo is interrupted.
	undo func(context.Context) error
}

// runSteps runs the steps in order. If one fails, or ctx ends, it undoes this and
// all previous steps in reverse order, even if undoing one of them fails.
func runSteps(ctx context.Context, progress Progress, steps []step) error {
	for i, s := range steps {
		progress.Start(s.title)
		err := s.run(ctx)
		// If ctx has ended, that is the cause, whatever the step returns: it may
		// not have noticed, or return the error of a killed child process.
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		progress.End(err)
		if err != nil {
			return errors.Join(err, undoSteps(ctx, progress, steps[:i+1]))
		}
	}
	return nil
}

func undoSteps(ctx context.Context, progress Progress, steps []step) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	progress.Start("Cleaning up all processes")
	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].undo == nil {
			continue
		}
		if err := steps[i].undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cleaning up after %q: %w", steps[i].title, err))
		}
	}
	err := errors.Join(errs...)
	progress.End(err)
	return err
}

// stopAfter stops a cluster that could not be finished, and returns both errors.
func stopAfter(ctx context.Context, c Cluster, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	return errors.Join(err, c.Stop(ctx))
}
