package pump

import (
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Count is what passed in one direction.
type Count struct{ Bytes, Frames uint64 }

// Resyncs are how often a kind was compared after a stream had begun: everything was sent, what differed, or nothing. All kinds at once,
// of which nothing was sent, count as one.
type Resyncs struct{ Full, Delta, Same uint64 }

// Numbers are those of all streams of one call between an agent and the hub, since the process began. Those below Open are of the
// stream that there is.
type Numbers struct {
	// Sent and Received are frames, and their bytes before compression and encryption.
	Sent, Received Count
	Resyncs        Resyncs
	// Rejects are objects that the receiver did not take, and Reject is the last one, as its kind and name.
	Rejects uint64
	Reject  string
	// Resets are the streams that ended, by the reason that ReasonOf gives.
	Resets map[string]uint64
	// Heard is when a frame arrived last; zero if none ever did.
	Heard time.Time

	Open bool
	// Since is when the stream began or, if there is none, when the last one ended.
	Since time.Time
	// Unacked is how many bytes have no Ack, or how many requests no answer. Oldest is since when the first of these has none.
	Unacked int
	Oldest  time.Time
	// Resyncing is how many kinds are still compared, and Comparing is one of them. A kind that the sender cannot list stays among them.
	Resyncing int
	Comparing string
	// Progress is what the other side says of its own Unacked and Oldest, and Told when it did.
	Progress *relayv1.Progress
	Told     time.Time
}

// Meter counts the frames of one call between an agent and the hub. It looks at what passes, and needs nothing of who sends or receives.
// Its methods may be called from any goroutine. The zero Meter counts.
type Meter struct {
	mu      sync.Mutex
	numbers Numbers
	// now is the stream that there is, or the last one; nil if there was none.
	now *Metered
}

// Metered is one stream that a Meter looks at. The lock of the Meter guards its fields.
type Metered struct {
	meter *Meter
	// changes are those without an Ack, and requests those without an answer.
	changes  []change
	requests map[uint64]time.Time
	// kinds are those that are compared, and how far that is.
	kinds map[string]resync
	// progress is what the other side said, and told when.
	progress *relayv1.Progress
	told     time.Time
}

// change is a Change that was sent.
type change struct {
	sequence uint64
	size     int
	at       time.Time
}

// allKinds stands for all kinds while they are compared at once.
const allKinds = "all kinds"

// resync is how a kind is compared.
type resync uint8

const (
	same resync = iota
	delta
	full
)

// Begin says that a stream began; the one before is of no more use.
func (m *Meter) Begin() *Metered {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = &Metered{meter: m, requests: map[uint64]time.Time{}, kinds: map[string]resync{}}
	m.numbers.Open, m.numbers.Since, m.numbers.Heard = true, time.Now(), time.Now()
	return m.now
}

// End says why the stream ended.
func (s *Metered) End(why error) {
	m := s.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.numbers.Resets == nil {
		m.numbers.Resets = map[string]uint64{}
	}
	m.numbers.Resets[ReasonOf(why)]++
	if m.now == s {
		m.numbers.Open, m.numbers.Since = false, time.Now()
		m.now = nil
	}
}

// Reasons why a stream ended, for metrics.
const (
	ReasonEnded    = "ended"    // in good order
	ReasonClosed   = "closed"   // the connection broke, was closed, or could not be made
	ReasonSilent   = "silent"   // nothing arrived for Silence
	ReasonStuck    = "stuck"    // what was sent is not acknowledged
	ReasonReplaced = "replaced" // by another stream of the same agent
	ReasonRemoved  = "removed"  // the cluster is not registered, or not any more
	ReasonRefused  = "refused"  // the other side does not accept who this is
	ReasonProtocol = "protocol" // a frame that cannot be, or another version
	ReasonOther    = "other"
)

// ReasonOf is the reason for which a stream ended, as one of few words.
func ReasonOf(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return ReasonEnded
	}
	switch status.FromContextError(err).Code() { //nolint:exhaustive // the others are looked at below
	case codes.Canceled:
		return ReasonClosed
	case codes.DeadlineExceeded:
		return ReasonSilent
	}
	switch status.Code(err) { //nolint:exhaustive // all others are one
	case codes.OK:
		return ReasonEnded
	case codes.Canceled, codes.Unavailable:
		return ReasonClosed
	case codes.DeadlineExceeded:
		return ReasonSilent
	case codes.ResourceExhausted:
		return ReasonStuck
	case codes.Aborted:
		return ReasonReplaced
	case codes.PermissionDenied:
		return ReasonRemoved
	case codes.Unauthenticated, codes.AlreadyExists:
		return ReasonRefused
	case codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
		return ReasonProtocol
	}
	return ReasonOther
}

// Sending counts what a function sends.
func Sending[F proto.Message](s *Metered, send func(F) error) func(F) error {
	return func(frame F) error {
		s.pass(frame, true)
		return send(frame)
	}
}

// Receiving counts what a function receives.
func Receiving[F proto.Message](s *Metered, receive func() (F, error)) func() (F, error) {
	return func() (F, error) {
		frame, err := receive()
		if err == nil {
			s.pass(frame, false)
		}
		return frame, err
	}
}

func (s *Metered) pass(frame proto.Message, out bool) {
	size, now, m := proto.Size(frame), time.Now(), s.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	count := &m.numbers.Received
	if out {
		count = &m.numbers.Sent
	} else {
		m.numbers.Heard = now
	}
	count.Bytes, count.Frames = count.Bytes+uint64(size), count.Frames+1
	switch f := frame.(type) {
	case *relayv1.Data:
		s.data(f, size, now, out)
	case *relayv1.Feedback:
		s.feedback(f, now, out)
	case *relayv1.Request:
		s.request(f, now)
	case *relayv1.Answer:
		delete(s.requests, f.GetId())
		s.beat(f.GetBeat(), now, out)
	}
}

// data looks at a frame of the sender of a set, under the lock.
func (s *Metered) data(d *relayv1.Data, size int, now time.Time, out bool) {
	switch f := d.GetFrame().(type) {
	case *relayv1.Data_Ask:
		delete(s.kinds, allKinds)
		if f.Ask.GetKind() != "" {
			s.kinds[f.Ask.GetKind()] = delta
		}
	case *relayv1.Data_Same:
		s.completed(&relayv1.Complete{Kind: allKinds})
	case *relayv1.Data_Change:
		s.changes = append(s.changes, change{f.Change.GetSequence(), size, now})
		s.progress = nil // it moves again
		if s.kinds[f.Change.GetKind()] == same && s.comparing(f.Change.GetKind()) {
			s.kinds[f.Change.GetKind()] = full
		}
	case *relayv1.Data_Complete:
		s.completed(f.Complete)
	case *relayv1.Data_Beat:
		s.beat(f.Beat, now, out)
	}
}

func (s *Metered) comparing(kind string) bool {
	_, compared := s.kinds[kind]
	return compared
}

// completed counts how a kind was compared, under the lock.
func (s *Metered) completed(c *relayv1.Complete) {
	how, compared := s.kinds[c.GetKind()]
	delete(s.kinds, c.GetKind())
	switch {
	case !compared || c.GetUnknown():
	case how == same:
		s.meter.numbers.Resyncs.Same++
	case how == delta:
		s.meter.numbers.Resyncs.Delta++
	case how == full:
		s.meter.numbers.Resyncs.Full++
	}
}

// feedback looks at a frame of the receiver of a set, under the lock.
func (s *Metered) feedback(d *relayv1.Feedback, now time.Time, out bool) {
	switch f := d.GetFrame().(type) {
	case *relayv1.Feedback_HeldAll:
		s.kinds[allKinds] = same
	case *relayv1.Feedback_Held:
		s.kinds[f.Held.GetKind()] = same
	case *relayv1.Feedback_Ack:
		for len(s.changes) > 0 && s.changes[0].sequence <= f.Ack.GetSequence() {
			s.changes = s.changes[1:]
		}
		for _, r := range f.Ack.GetRejects() {
			s.meter.numbers.Rejects++
			s.meter.numbers.Reject = r.GetKind() + " " + r.GetName().GetNamespace() + "/" + r.GetName().GetName()
		}
	case *relayv1.Feedback_Beat:
		s.beat(f.Beat, now, out)
	}
}

// request notes a request that waits for its answer, under the lock.
func (s *Metered) request(r *relayv1.Request, now time.Time) {
	switch {
	case r.GetId() == 0:
	case r.GetCancel():
		delete(s.requests, r.GetId())
	default:
		s.requests[r.GetId()] = now
	}
}

func (s *Metered) beat(b *relayv1.Beat, now time.Time, out bool) {
	if !out && b.GetProgress() != nil {
		s.progress, s.told = b.GetProgress(), now
	}
}

// Numbers are what was counted by now.
func (m *Meter) Numbers() Numbers {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.numbers
	out.Resets = maps.Clone(out.Resets)
	s := m.now
	if s == nil {
		return out
	}
	out.Progress, out.Told = s.progress, s.told
	out.Unacked = len(s.requests)
	for _, c := range s.changes {
		out.Unacked += c.size
	}
	if len(s.changes) > 0 {
		out.Oldest = s.changes[0].at
	}
	for _, at := range s.requests {
		if out.Oldest.IsZero() || at.Before(out.Oldest) {
			out.Oldest = at
		}
	}
	out.Resyncing = len(s.kinds)
	for kind := range s.kinds {
		out.Comparing = max(out.Comparing, kind)
	}
	return out
}

// Beat is a beat that tells the other side how far this one is.
func (m *Meter) Beat() *relayv1.Beat {
	n := m.Numbers()
	p := &relayv1.Progress{UnackedBytes: uint64(n.Unacked)}
	if !n.Oldest.IsZero() {
		p.OldestMilliseconds = uint64(max(time.Since(n.Oldest).Milliseconds(), 0))
	}
	return &relayv1.Beat{Progress: p}
}

// Lag is for how long the oldest waits that was sent and has no Ack, or no answer.
func (n *Numbers) Lag(now time.Time) time.Duration {
	if !n.Open || n.Oldest.IsZero() {
		return 0
	}
	return max(now.Sub(n.Oldest), 0)
}

// ToldLag is the lag of the other side, as it said last: it goes on until it says something else.
func (n *Numbers) ToldLag(now time.Time) time.Duration {
	if !n.Open || n.Progress.GetOldestMilliseconds() == 0 || n.Progress.GetUnackedBytes() == 0 {
		return n.Lag(now)
	}
	return time.Duration(n.Progress.GetOldestMilliseconds())*time.Millisecond + now.Sub(n.Told)
}
