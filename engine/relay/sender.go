package relay

import (
	"fmt"
	"maps"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Sizes of what is sent, in bytes. gRPC takes messages of 4 MiB.
const (
	// MaxObject is the largest object.
	MaxObject = 2 << 20
	// maxChange is from which size on a Change takes no further object: over a slow connection, it takes seconds.
	maxChange = 16 << 10
	// maxUnacked is how much may be on its way.
	maxUnacked = 1 << 20
	// nameCost is about what a name and a hash take.
	nameCost = 64
)

// Contents are the objects that a Sender sends.
type Contents interface {
	// Object returns an object as it is now; false if there is none. The same object has the same bytes.
	Object(kind string, of Key) ([]byte, bool)
	// Version is up to which version of its own Object has what there is of a kind; 0 if there is no such thing.
	Version(kind string) uint64
}

// Sender has a set of objects, and tells a Receiver of it. It is used by one goroutine at a time.
type Sender struct {
	contents Contents
	kinds    map[string]*outgoing
	// order is that of the kinds, and the one at which Next goes on.
	order []string
	next  int
	// frames are sent before any Change.
	frames []*relayv1.Data

	sequence, acked uint64
	// inFlight are the Changes after acked, of unacked bytes together.
	inFlight []inFlight
	unacked  int
}

// inFlight is a Change that was not acknowledged.
type inFlight struct {
	size int
	// head names its first object.
	head string
}

// outgoing is one kind of a Sender.
type outgoing struct {
	// here is what there is, but for changed; there is what the receiver has once it has everything that was sent.
	here, there *set
	// changed are objects that may be other than here says, and due those that the receiver is to be told of.
	changed map[Key]bool
	due     keys
	// large are objects of more than MaxObject, with their size: the receiver keeps them as they were before.
	large map[Key]int
	// complete: changed and here are all there is.
	complete bool
	// version is that of here.
	version uint64
	stage   stage
	// told: Complete was sent with what there is.
	told bool
}

// stage is how far a Sender and a Receiver are with a kind.
type stage uint8

const (
	// unknown: the receiver has not said what it has.
	unknown stage = iota
	// held: it has, and that was not compared.
	held
	// asked: it was asked for names.
	asked
	// following: only changes are sent.
	following
)

// NewSender prepares a Sender of these kinds, which has no objects.
func NewSender(contents Contents, kinds ...string) *Sender {
	s := &Sender{contents: contents, kinds: map[string]*outgoing{}, order: kinds}
	for _, kind := range kinds {
		s.kinds[kind] = &outgoing{here: newSet(), there: newSet(), changed: map[Key]bool{}, large: map[Key]int{}}
	}
	return s
}

// Begin starts with a new stream: nothing is known of what the receiver has.
func (s *Sender) Begin() {
	s.frames, s.inFlight, s.sequence, s.acked, s.unacked = nil, nil, 0, 0, 0
	for _, k := range s.kinds {
		k.there, k.due, k.stage, k.told = newSet(), keys{}, unknown, false
	}
}

// Changed says that objects may be other than before.
func (s *Sender) Changed(kind string, of ...Key) {
	k := s.kinds[kind]
	for _, key := range of {
		k.changed[key] = true
	}
	k.told = k.told && len(of) == 0
}

// SetComplete says whether all objects of a kind were named by Changed.
func (s *Sender) SetComplete(kind string, complete bool) {
	k := s.kinds[kind]
	if k.complete == complete {
		return
	}
	k.complete, k.told = complete, false
	if complete && k.stage == following {
		s.look(kind, k)
		s.compare(k) // what only the receiver has is gone
	}
}

// Unacked is how many bytes are on their way.
func (s *Sender) Unacked() int { return s.unacked }

// Progress is how many Changes were acknowledged, and the first object that was not; empty if all were.
func (s *Sender) Progress() (acked uint64, head string) {
	if len(s.inFlight) == 0 {
		return s.acked, ""
	}
	return s.acked, s.inFlight[0].head
}

// headOf names the first object of a Change.
func headOf(c *relayv1.Change) string {
	names := c.GetRemovals()
	if len(c.GetPuts()) > 0 {
		names = []*relayv1.Name{c.GetPuts()[0].GetName()}
	}
	return c.GetKind() + " " + names[0].GetNamespace() + "/" + names[0].GetName()
}

// Receive takes a frame of the receiver. An error means that the stream is of no more use.
func (s *Sender) Receive(f *relayv1.Feedback) error {
	switch frame := f.GetFrame().(type) {
	case *relayv1.Feedback_Held:
		return s.receiveHeld(frame.Held)
	case *relayv1.Feedback_HeldAll:
		s.receiveHeldAll(frame.HeldAll)
	case *relayv1.Feedback_Have:
		return s.receiveHave(frame.Have)
	case *relayv1.Feedback_Ack:
		return s.receiveAck(frame.Ack.GetSequence())
	}
	return nil
}

func (s *Sender) receiveHeld(h *relayv1.Held) error {
	k := s.kinds[h.GetKind()]
	if k == nil {
		s.frames = append(s.frames, &relayv1.Data{Frame: &relayv1.Data_Complete{Complete: &relayv1.Complete{Kind: h.GetKind(), Unknown: true}}})
		return nil
	}
	s.look(h.GetKind(), k)
	k.there, k.due, k.told = newSet(), keys{}, false
	if k.complete && k.here.is(h.GetCount(), h.GetDigest()) {
		k.there.of, k.there.digest = maps.Clone(k.here.of), k.here.digest
		k.stage = following
		return nil
	}
	if h.GetCount() == 0 {
		k.stage = following
		s.compare(k)
		return nil
	}
	k.stage = held
	return nil
}

func (s *Sender) receiveHave(h *relayv1.Have) error {
	k := s.kinds[h.GetKind()]
	if k == nil || k.stage != asked {
		return fmt.Errorf("names of %q arrived that were not asked for", h.GetKind())
	}
	for _, entry := range h.GetEntries() {
		hash, ok := hashFrom(entry.GetHash())
		if !ok {
			return fmt.Errorf("the hash of a %s has %d bytes instead of %d", h.GetKind(), len(entry.GetHash()), hashSize)
		}
		k.there.put(keyOf(entry.GetName()), hash)
	}
	if h.GetLast() {
		k.stage = following
		s.look(h.GetKind(), k)
		s.compare(k)
	}
	return nil
}

// compare finds all in which here and there differ. What only the receiver has may not have been seen here yet, until all was.
func (s *Sender) compare(k *outgoing) {
	for key, h := range k.here.of {
		if !k.there.has(key, h) {
			k.due.add(key)
		}
	}
	for key := range k.there.of {
		if _, here := k.here.of[key]; !here {
			k.due.add(key)
		}
	}
}

func (s *Sender) receiveAck(sequence uint64) error {
	if sequence > s.sequence {
		return fmt.Errorf("change %d is acknowledged, and %d was the last one that was sent", sequence, s.sequence)
	}
	for s.acked < sequence {
		s.acked++
		s.unacked -= s.inFlight[0].size
		s.inFlight = s.inFlight[1:]
	}
	return nil
}

// Large calls f with each object that is too large to be sent, and its size in bytes, in no order.
func (s *Sender) Large(f func(kind string, of Key, size int)) {
	for kind, k := range s.kinds {
		for of, size := range k.large {
			f(kind, of, size)
		}
	}
}

// object is an object as it is to be sent; not fit if it is too large for that.
func (s *Sender) object(kind string, k *outgoing, of Key) (object []byte, exists, fit bool) {
	object, exists = s.contents.Object(kind, of)
	if len(object) > MaxObject {
		k.large[of] = len(object)
		return nil, true, false
	}
	delete(k.large, of)
	return object, exists, true
}

// look brings here up to date.
func (s *Sender) look(kind string, k *outgoing) {
	k.version = s.contents.Version(kind) // first: what changes meanwhile is changed again
	for key := range k.changed {
		switch object, exists, fit := s.object(kind, k, key); {
		case !fit:
			continue
		case exists:
			k.here.put(key, HashOf(object))
		default:
			k.here.remove(key)
		}
		if k.stage == following {
			k.due.add(key)
		}
	}
	clear(k.changed)
}

// Next is the next frame; nil if there is none now.
func (s *Sender) Next() *relayv1.Data {
	if len(s.frames) > 0 {
		frame := s.frames[0]
		s.frames = s.frames[1:]
		return frame
	}
	for range s.order {
		kind := s.order[s.next]
		if frame := s.nextOf(kind, s.kinds[kind]); frame != nil {
			return frame
		}
		s.next = (s.next + 1) % len(s.order)
	}
	return nil
}

func (s *Sender) nextOf(kind string, k *outgoing) *relayv1.Data {
	switch {
	case k.stage == held && k.complete:
		k.stage = asked
		return &relayv1.Data{Frame: &relayv1.Data_Ask{Ask: &relayv1.Ask{Kind: kind}}}
	case k.stage != following:
		return nil
	}
	s.look(kind, k)
	if c := s.change(kind, k); c != nil {
		return &relayv1.Data{Frame: &relayv1.Data_Change{Change: c}}
	}
	if k.told || !k.complete || k.due.len() > 0 {
		return nil
	}
	k.told = true
	return &relayv1.Data{Frame: &relayv1.Data_Complete{Complete: &relayv1.Complete{
		Kind: kind, Count: uint64(len(k.there.of)), Digest: k.there.digest[:], Version: k.version,
	}}}
}

// change is as much of what is due as there is room for; nil if there is none, or nothing is due.
func (s *Sender) change(kind string, k *outgoing) *relayv1.Change {
	if s.unacked >= maxUnacked {
		return nil
	}
	c, size := &relayv1.Change{Kind: kind}, 0
	for size < maxChange {
		key, due := k.due.pop()
		if !due {
			break
		}
		object, exists, fit := s.object(kind, k, key)
		hash := HashOf(object)
		switch _, there := k.there.of[key]; {
		case !fit:
			continue
		case exists && !k.there.has(key, hash):
			c.Puts = append(c.Puts, &relayv1.Put{Name: key.wire(), Hash: hash[:], Object: object})
			k.here.put(key, hash)
			k.there.put(key, hash)
			size += len(object)
		case !exists && there && k.complete:
			c.Removals = append(c.Removals, key.wire())
			k.here.remove(key)
			k.there.remove(key)
		default:
			continue
		}
		size += nameCost + len(key.Namespace) + len(key.Name)
	}
	if size == 0 {
		return nil
	}
	s.sequence++
	c.Sequence = s.sequence
	s.inFlight = append(s.inFlight, inFlight{size, headOf(c)})
	s.unacked += size
	return c
}
