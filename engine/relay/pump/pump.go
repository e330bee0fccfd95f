// Package pump passes the frames of one side of a stream.
package pump

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Beat is how long a side says nothing at most: proxies on the way end streams on which nothing passes, and HTTP/2 pings do not count
// for them.
const Beat = 10 * time.Second

// Silence is how long a side hears nothing until the stream counts as lost.
const Silence = 35 * time.Second

// Run sends what next returns until it returns false, each time that there is a signal; and a beat where nothing was sent for a time.
// It returns when ctx ends, or send fails.
func Run[F any](ctx context.Context, signal <-chan struct{}, next func() (F, bool), beat func() F, send func(F) error) error {
	ticker := time.NewTicker(Beat)
	defer ticker.Stop()
	for {
		for frame, more := next(); more; frame, more = next() {
			if err := send(frame); err != nil {
				return err
			}
			ticker.Reset(Beat)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-signal:
		case <-ticker.C:
			if err := send(beat()); err != nil {
				return err
			}
		}
	}
}

// Receive passes frames on until one cannot be received or taken, or none arrives for Silence, and ends the stream then.
func Receive[F any](receive func() (F, error), take func(F) error, end context.CancelCauseFunc) {
	lost := time.AfterFunc(Silence, func() { end(status.Error(codes.DeadlineExceeded, fmt.Sprintf("nothing arrived for %s", Silence))) })
	defer lost.Stop()
	for {
		frame, err := receive()
		if err != nil {
			end(err)
			return
		}
		lost.Reset(Silence)
		if err := take(frame); err != nil {
			end(status.Error(codes.InvalidArgument, err.Error()))
			return
		}
	}
}

// Cause is why a stream ended: what ended its context, or else err.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// Signal writes to a channel with room for one, unless a signal is waiting there.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
