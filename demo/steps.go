package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cleanUpTimeout bounds the undoing of everything; killing takes milliseconds.
const cleanUpTimeout = 2 * time.Minute

// step is one line of what a person sees a demo do.
type step struct {
	title string
	run   func(context.Context) error
	// undo takes back what run did or had begun to do; nil if there is nothing
	// to take back. Its context does not end when the demo is interrupted.
	undo func(context.Context) error
}

// runSteps runs the steps in order. When one fails, or ctx ends, it undoes that
// one and those before it, last first, all of them whatever happens.
func runSteps(ctx context.Context, progress Progress, steps []step) error {
	for i, s := range steps {
		progress.Start(s.title)
		err := s.run(ctx)
		// Once ctx has ended, that is the reason, whatever the step makes of it:
		// it may not have noticed, and a child that was killed on the way fails
		// with words of its own.
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
	progress.Start("Cleaning up: no process stays")
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
