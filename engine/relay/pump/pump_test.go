package pump

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
