// Package pump passes the frames of one side of a stream.
package pump

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/kube"
)

// Times bound how long nothing may happen on a stream. What is zero has the default.
type Times struct {
	// Beat is how long a side says nothing at most, 10 s: proxies on the way end streams on which nothing passes, and HTTP/2 pings do not
	// count for them.
	Beat time.Duration
	// Silence is how long a side hears nothing until the stream counts as lost, 35 s.
	Silence time.Duration
	// Patience is how long what was sent is not acknowledged until the stream is ended, 30 s: the other side hears, and does nothing.
	Patience time.Duration
}

func (t Times) beat() time.Duration     { return cmp.Or(t.Beat, 10*time.Second) }
func (t Times) silence() time.Duration  { return cmp.Or(t.Silence, 35*time.Second) }
func (t Times) patience() time.Duration { return cmp.Or(t.Patience, 30*time.Second) }

// Out is what one side sends.
type Out[F any] struct {
	Times Times
	// Signal is signalled when Next may return something.
	Signal <-chan struct{}
	// Next is the next frame; false if there is none now. It does not wait.
	Next func() (F, bool)
	// Beat is sent where nothing else was for a time.
	Beat func() F
	// Send sends a frame.
	Send func(F) error
	// Progress is how much the other side has acknowledged, and what it is to acknowledge next, empty if there is nothing. It is nil where
	// nothing is acknowledged.
	Progress func() (acked uint64, head string)
}

// Run sends what Next returns until it returns false, each time that there is a signal. It returns when ctx ends, when Send fails, or when
// nothing is acknowledged, or a frame is not taken, for too long; also while Send has not returned, which it does once the stream has ended.
// Next is not called any more then.
func Run[F any](ctx context.Context, o Out[F]) error {
	w := &writer[F]{Out: o}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer w.stop()
	written := make(chan error, 1)
	go func() { written <- w.run(ctx) }()
	look := time.NewTicker(o.Times.patience() / 3)
	defer look.Stop()
	p := progress{ask: o.Progress, patience: o.Times.patience(), at: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-written:
			return err
		case <-look.C:
			now := time.Now()
			if stands := cmp.Or(p.look(now), w.look(now)); stands != nil {
				return stands
			}
		}
	}
}

// writer sends frames. Send may take as long as the other side reads nothing.
type writer[F any] struct {
	Out[F]

	mu sync.Mutex
	// stopped: nothing is sent any more. sending is since when a frame is sent; zero while none is.
	stopped bool
	sending time.Time
}

// next is Out.Next as long as the writer is not stopped.
func (w *writer[F]) next() (frame F, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return frame, false
	}
	return w.Next()
}

func (w *writer[F]) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

func (w *writer[F]) send(frame F) error {
	at := func(t time.Time) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sending = t
	}
	at(time.Now())
	defer at(time.Time{})
	return w.Send(frame)
}

// look returns a Standstill if a frame is not taken for too long.
func (w *writer[F]) look(now time.Time) *Standstill {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waited := now.Sub(w.sending); !w.sending.IsZero() && waited >= w.Times.patience() {
		return &Standstill{What: fmt.Sprintf("a frame is not taken for %s: the other side reads nothing", waited.Round(time.Second))}
	}
	return nil
}

// run sends until ctx ends or Send fails.
func (w *writer[F]) run(ctx context.Context) error {
	ticker := time.NewTicker(w.Times.beat())
	defer ticker.Stop()
	for {
		for frame, more := w.next(); more; frame, more = w.next() {
			if err := w.send(frame); err != nil {
				return err
			}
			ticker.Reset(w.Times.beat())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.Signal:
		case <-ticker.C:
			if err := w.send(w.Beat()); err != nil {
				return err
			}
		}
	}
}

// progress watches what the other side acknowledges.
type progress struct {
	ask      func() (uint64, string)
	patience time.Duration
	// acked is how much it had at a time.
	acked uint64
	at    time.Time
}

// look returns a Standstill if nothing was acknowledged for too long though there is something.
func (p *progress) look(now time.Time) *Standstill {
	if p.ask == nil {
		return nil
	}
	acked, head := p.ask()
	if head == "" || acked != p.acked {
		p.acked, p.at = acked, now
		return nil
	}
	if waited := now.Sub(p.at); waited >= p.patience {
		return &Standstill{Head: head, What: fmt.Sprintf("%s was sent, and is not acknowledged for %s", head, waited.Round(time.Second))}
	}
	return nil
}

// Receive passes frames on until one cannot be received or taken, or none arrives for a time, and ends the stream then. A panic is about one
// frame of one stream.
func Receive[F any](t Times, receive func() (F, error), take func(F) error, end context.CancelCauseFunc) {
	silence := t.silence()
	lost := time.AfterFunc(silence, func() { end(status.Error(codes.DeadlineExceeded, fmt.Sprintf("nothing arrived for %s", silence))) })
	defer lost.Stop()
	for {
		frame, err := receive()
		if err != nil {
			end(err)
			return
		}
		lost.Reset(silence)
		if broken := kube.Catch(func() { err = take(frame) }); broken != nil {
			end(status.Error(codes.Internal, "the frame was not processed: "+broken.Error()))
			return
		}
		if err != nil {
			end(status.Error(codes.InvalidArgument, err.Error()))
			return
		}
	}
}

// First is the first frame of a stream, which has to come soon: before it, it is not known who is there.
func First[F any](t Times, receive func() (F, error)) (F, error) {
	type result struct {
		frame F
		err   error
	}
	came := make(chan result, 1)
	go func() { // it ends with the stream
		frame, err := receive()
		came <- result{frame, err}
	}()
	select {
	case r := <-came:
		return r.frame, r.err
	case <-time.After(t.patience()):
		var none F
		return none, status.Error(codes.DeadlineExceeded, "no first frame arrived for "+t.patience().String())
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
