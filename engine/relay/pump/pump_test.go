package pump

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestAFirstFrameHasToCome: a caller that says nothing does not stay.
func TestAFirstFrameHasToCome(t *testing.T) {
	t.Parallel()
	release := make(chan int)
	_, err := First(Times{Patience: time.Millisecond}, func() (int, error) { return <-release, nil })
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
	close(release)
	got, err := First(Times{}, func() (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, got)
}

// TestAFrameEndsAtMostItsStream: what a frame does to who takes it.
func TestAFrameEndsAtMostItsStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		take func(int) error
		want codes.Code
	}{
		"panics":  {func(int) error { panic("x") }, codes.Internal},
		"refused": {func(int) error { return io.ErrUnexpectedEOF }, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, end := context.WithCancelCause(t.Context())
			Receive(Times{}, func() (int, error) { return 1, nil }, c.take, end)
			assert.Equal(t, c.want, status.Code(context.Cause(ctx)))
		})
	}
}

// TestASendThatDoesNotReturn: a stream whose other side reads nothing ends after Patience, also where nothing is acknowledged; or when its
// context ends. Nothing is taken for it afterwards.
func TestASendThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		revoked bool
		after   time.Duration
		want    string
	}{
		"nobody reads": {after: 30 * time.Second, want: ReasonStuck},
		"it is ended":  {revoked: true, after: 5 * time.Second, want: ReasonClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.revoked {
					time.AfterFunc(c.after, cancel)
				}
				release, taken := make(chan struct{}), 0
				began := time.Now()
				err := Run(ctx, Out[int]{
					Signal: make(chan struct{}), Beat: func() int { return 0 },
					Next: func() (int, bool) { taken++; return taken, true },
					Send: func(int) error { <-release; return nil },
				})
				assert.Equal(t, c.want, ReasonOf(err), err)
				assert.LessOrEqual(t, time.Since(began), c.after+10*time.Second)
				close(release)
				synctest.Wait()
				assert.Equal(t, 1, taken)
			})
		})
	}
}
