// Package pump sends the frames of one side of a stream.
package pump

import (
	"context"
	"time"
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
		for frame, any := next(); any; frame, any = next() {
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

// Signal writes to a channel with room for one, unless a signal is waiting there.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Watchdog ends a stream on which nothing arrives. Call Heard with each frame.
type Watchdog struct{ timer *time.Timer }

// Watch calls lost once nothing was heard for Silence, until Stop.
func Watch(lost func()) *Watchdog { return &Watchdog{time.AfterFunc(Silence, lost)} }

// Heard says that something arrived.
func (w *Watchdog) Heard() { w.timer.Reset(Silence) }

// Stop ends the watch.
func (w *Watchdog) Stop() { w.timer.Stop() }
