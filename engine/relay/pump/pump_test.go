package pump

import (
	"context"
	"io"
	"testing"
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
