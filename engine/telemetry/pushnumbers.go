package telemetry

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/traffic"
)

// numbers is what one stream of a proxy says, and what of that was not passed on: each reading has what those before have.
type numbers struct {
	local *Local
	pod   traffic.Proxy
	pause time.Duration
	// ended is closed when nothing more of the stream counts.
	ended chan struct{}

	mu   sync.Mutex // guards what follows
	book *traffic.Pushed
	// came is when the last message did; reading is of the time at, and waits to be passed on.
	came, at time.Time
	reading  *traffic.Reading
	// passed is when one was passed on last; over says that the stream has ended.
	passed time.Time
	over   bool
}

// stream takes what one proxy sends until it ends. It always reads: a proxy keeps what is not read in its memory.
func (p *Push) stream(in grpc.ServerStream, from *sender, pod *traffic.LocalPod) error {
	first, err := from.receive(in)
	for ; err == nil && first == nil; first, err = from.receive(in) {
		p.local.lost()
	}
	if err != nil {
		return err
	}
	if err := itself(pod, first.node); err != nil {
		return p.refuse(ofNumbers, codes.PermissionDenied, err)
	}
	now := from.begin(p.local, pod, p.options.pause, pod.Stats.Counts != nil && pod.Stats.Counts(first.metadata))
	defer now.end() // with the last word of a proxy
	return now.take(in, from, first, p.options.settled)
}

// receive is the next message; nil if it is beyond what a sender may send.
func (s *sender) receive(in grpc.ServerStream) (*pushed, error) {
	var text []byte
	if err := in.RecvMsg(&text); err != nil {
		return nil, err
	}
	if !s.may(len(text)) {
		return nil, nil //nolint:nilnil // no message, and no error
	}
	message := &pushed{}
	return message, message.read(text)
}

// take takes all messages of a proxy.
func (n *numbers) take(in grpc.ServerStream, from *sender, first *pushed, settled time.Duration) error {
	type received struct {
		message *pushed
		err     error
	}
	came := make(chan received)
	go func() {
		for message, err := first, error(nil); ; message, err = from.receive(in) {
			select {
			case came <- received{message, err}:
			case <-in.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	timer := time.NewTimer(settled)
	defer timer.Stop()
	for {
		select {
		case r := <-came:
			switch {
			case r.err != nil:
				return r.err
			case r.message == nil: // the next one has the same counters
				n.local.lost()
				continue
			}
			n.add(time.Now(), r.message)
		case <-timer.C:
		case <-n.ended:
			return status.Error(codes.Aborted, "another stream of this pod has begun")
		case <-in.Context().Done():
			return status.FromContextError(in.Context().Err()).Err()
		}
		timer.Reset(n.pass(time.Now(), settled))
	}
}

// add takes a message.
func (n *numbers) add(now time.Time, m *pushed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	n.hold(n.book.Take(m.at, m.metrics))
	n.came = now
}

// hold has a reading wait to be passed on, which is of the last message, under the lock.
func (n *numbers) hold(r *traffic.Reading) {
	if r != nil {
		n.reading, n.at = r, n.came
	}
}

// idle is after which time a stream is looked at again of which nothing waits.
const idle = time.Minute

// pass passes on what waits, if it is time to, and returns after which time there may be more to pass on.
func (n *numbers) pass(now time.Time, settled time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := idle
	if n.over {
		return next
	}
	if quiet := now.Sub(n.came); quiet < settled {
		next = settled - quiet
	} else {
		n.hold(n.book.Complete())
	}
	if n.reading == nil {
		return next
	}
	if rest := n.pause - now.Sub(n.passed); rest > 0 {
		return min(next, rest)
	}
	n.forward(now)
	return next
}

// forward passes on what waits, under the lock.
func (n *numbers) forward(now time.Time) {
	if n.reading != nil {
		n.local.pushed(n.pod, n.reading, n.at)
		n.reading, n.passed = nil, now
	}
}

// end passes on the last word of a stream, of which nothing counts from then on. It returns when something was passed on last.
func (n *numbers) end() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.hold(n.book.Complete())
		n.forward(time.Now())
		n.over = true
		close(n.ended)
	}
	return n.passed
}
