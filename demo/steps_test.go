package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder records the progress.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *recorder) Start(step string) { r.add("start " + step) }

func (r *recorder) Note(format string, args ...any) { r.add("note " + fmt.Sprintf(format, args...)) }

func (r *recorder) End(err error) {
	if err != nil {
		r.add("failed")
		return
	}
	r.add("done")
}

func TestRunSteps(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	stuck := errors.New("stuck")
	for name, test := range map[string]struct {
		fails, undoFails string // the step
		want             []string
	}{
		"all is well": {want: []string{"run a", "run b", "run c"}},
		"the last fails": {fails: "c", want: []string{
			"run a", "run b", "run c", "undo c", "undo b", "undo a",
		}},
		"the first fails": {fails: "a", want: []string{"run a", "undo a"}},
		"an undo fails and the others go on": {fails: "b", undoFails: "b", want: []string{
			"run a", "run b", "undo b", "undo a",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var did []string
			var steps []step
			for _, title := range []string{"a", "b", "c"} {
				steps = append(steps, step{
					title: title,
					run: func(context.Context) error {
						did = append(did, "run "+title)
						if title == test.fails {
							return broken
						}
						return nil
					},
					undo: func(context.Context) error {
						did = append(did, "undo "+title)
						if title == test.undoFails {
							return stuck
						}
						return nil
					},
				})
			}
			err := runSteps(t.Context(), &recorder{}, steps)
			assert.Equal(t, test.want, did)
			if test.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, broken)
			if test.undoFails != "" {
				require.ErrorIs(t, err, stuck)
				require.ErrorContains(t, err, `cleaning up after "b"`)
			}
		})
	}
}

func TestRunStepsWhenInterrupted(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{
		"the step does not notice":       nil,
		"what it had started was killed": errors.New("signal: killed"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			seen := &recorder{}
			var undoErr error
			err := runSteps(ctx, seen, []step{
				{
					title: "is cut off",
					run: func(context.Context) error {
						interrupt()
						return result
					},
					undo: func(ctx context.Context) error {
						undoErr = ctx.Err()
						return nil
					},
				},
				{title: "never begins", run: func(context.Context) error { return nil }},
			})
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, undoErr, "the context of the cleanup has not ended")
			assert.Equal(t, []string{"start is cut off", "failed", "start Cleaning up all processes", "done"}, seen.lines)
		})
	}
}
