package relay

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Object is an object as it was received.
type Object struct {
	Key   Key
	Bytes []byte
}

// Store takes over what a Receiver received.
type Store interface {
	// Take changes objects of one kind, and says which ones it could not take over, and why. These stay as they were.
	Take(kind string, puts []Object, removals []Key) map[Key]error
	// Complete says that everything of a kind was taken, up to a version of the sender's own: exactly what held reports.
	Complete(kind string, version uint64, held func(Key) bool)
}

// Receiver is to have what a Sender has. It is used by one goroutine at a time.
type Receiver struct {
	store Store
	kinds map[string]*incoming
	order []string
	// frames are sent before any Ack.
	frames []*relayv1.Feedback
	// sequence is that of the last Change, and acked the last one that was acknowledged.
	sequence, acked uint64
	rejects         []*relayv1.Reject
	mismatches      int
}

// incoming is one kind of a Receiver.
type incoming struct {
	held *set
	// complete: the sender has said in this stream that this is all.
	complete bool
	// unknown: the sender has said that it knows no such kind, and nothing else since.
	unknown bool
}

// NewReceiver prepares a Receiver of these kinds, which has no objects.
func NewReceiver(store Store, kinds ...string) *Receiver {
	r := &Receiver{store: store, kinds: map[string]*incoming{}, order: kinds}
	for _, kind := range kinds {
		r.kinds[kind] = &incoming{held: newSet()}
	}
	return r
}

// Begin starts with a new stream, whose sides both speak a version of the protocol: what is there is to be compared with what the sender has.
func (r *Receiver) Begin(protocol uint32) {
	r.frames, r.rejects, r.sequence, r.acked = nil, nil, 0, 0
	empty := true
	for _, k := range r.kinds {
		k.complete = false
		empty = empty && len(k.held.of) == 0
	}
	if protocol >= togetherSince && !empty {
		r.sayTogether()
	} else {
		r.sayAll()
	}
}

// say tells the sender what is there of a kind.
func (r *Receiver) say(kind string) {
	held := r.kinds[kind].held
	r.frames = append(r.frames, &relayv1.Feedback{Frame: &relayv1.Feedback_Held{Held: &relayv1.Held{
		Kind: kind, Count: uint64(len(held.of)), Digest: append([]byte(nil), held.digest[:]...),
	}}})
}

// Complete reports whether everything of all kinds is there, but of some. Waiting is one that is not.
func (r *Receiver) Complete(but func(kind string) bool) (waiting string, complete bool) {
	for _, kind := range r.order {
		if !r.kinds[kind].complete && !but(kind) {
			return kind, false
		}
	}
	return "", true
}

// Unknown are the kinds that the sender does not know, in the order of the kinds.
func (r *Receiver) Unknown() (out []string) {
	for _, kind := range r.order {
		if r.kinds[kind].unknown {
			out = append(out, kind)
		}
	}
	return out
}

// Mismatches is how often what was there differed from what the sender said that it is.
func (r *Receiver) Mismatches() int { return r.mismatches }

// Receive takes a frame of the sender. An error means that the stream is of no more use.
func (r *Receiver) Receive(d *relayv1.Data) error {
	switch frame := d.GetFrame().(type) {
	case *relayv1.Data_Ask:
		return r.receiveAsk(frame.Ask.GetKind())
	case *relayv1.Data_Change:
		return r.receiveChange(frame.Change)
	case *relayv1.Data_Complete:
		return r.receiveComplete(frame.Complete)
	case *relayv1.Data_Same:
		r.receiveSame(frame.Same)
	}
	return nil
}

// maxNames is how many names a Have has at most: they stay below the size of a message however long they are.
const maxNames = 4096

// maxRejects is how many objects an Ack says were not taken, for the same reason.
const maxRejects = 1000

func (r *Receiver) receiveAsk(kind string) error {
	if kind == "" {
		r.sayAll()
		return nil
	}
	k := r.kinds[kind]
	if k == nil {
		return fmt.Errorf("the sender asks for names of %q, of which nothing was said", kind)
	}
	have := &relayv1.Have{Kind: kind}
	for key, hash := range k.held.of {
		if len(have.Entries) == maxNames {
			r.frames = append(r.frames, &relayv1.Feedback{Frame: &relayv1.Feedback_Have{Have: have}})
			have = &relayv1.Have{Kind: kind}
		}
		have.Entries = append(have.Entries, &relayv1.Entry{Name: key.wire(), Hash: hash[:]})
	}
	have.Last = true
	r.frames = append(r.frames, &relayv1.Feedback{Frame: &relayv1.Feedback_Have{Have: have}})
	return nil
}

func (r *Receiver) receiveChange(c *relayv1.Change) error {
	k := r.kinds[c.GetKind()]
	if k == nil {
		return fmt.Errorf("objects of %q arrived, of which nothing was said", c.GetKind())
	}
	if c.GetSequence() != r.sequence+1 {
		return fmt.Errorf("change %d arrived after change %d", c.GetSequence(), r.sequence)
	}
	puts := make([]Object, 0, len(c.GetPuts()))
	hashes := make(map[Key]Hash, len(c.GetPuts()))
	for _, put := range c.GetPuts() {
		hash, ok := hashFrom(put.GetHash())
		if !ok {
			return fmt.Errorf("the hash of a %s has %d bytes instead of %d", c.GetKind(), len(put.GetHash()), hashSize)
		}
		o := Object{Key: keyOf(put.GetName()), Bytes: put.GetObject()}
		puts = append(puts, o)
		hashes[o.Key] = hash
	}
	removals := make([]Key, 0, len(c.GetRemovals()))
	for _, name := range c.GetRemovals() {
		removals = append(removals, keyOf(name))
	}
	rejected := r.store.Take(c.GetKind(), puts, removals)
	for key, hash := range hashes {
		// One that is rejected is not to be sent again as it is.
		k.held.put(key, hash)
		if err := rejected[key]; err != nil {
			r.rejects = append(r.rejects, &relayv1.Reject{Kind: c.GetKind(), Name: key.wire(), Hash: hash[:], What: Text(err.Error())})
		}
	}
	for _, key := range removals {
		k.held.remove(key)
	}
	r.sequence = c.GetSequence()
	return nil
}

func (r *Receiver) receiveComplete(c *relayv1.Complete) error {
	k := r.kinds[c.GetKind()]
	switch {
	case k == nil:
		return fmt.Errorf("%q is said to be complete, of which nothing was said", c.GetKind())
	case c.GetUnknown():
		k.complete, k.unknown = true, true
	case k.held.is(c.GetCount(), c.GetDigest()):
		r.completed(c.GetKind(), k, c.GetVersion())
	default:
		k.complete = false
		r.mismatches++
		r.say(c.GetKind())
	}
	return nil
}

// Next is the next frame; nil if there is none now.
func (r *Receiver) Next() *relayv1.Feedback {
	switch {
	case len(r.frames) > 0:
		frame := r.frames[0]
		r.frames = r.frames[1:]
		return frame
	case len(r.rejects) > maxRejects:
		ack := &relayv1.Ack{Sequence: r.acked, Rejects: r.rejects[:maxRejects:maxRejects]}
		r.rejects = r.rejects[maxRejects:]
		return &relayv1.Feedback{Frame: &relayv1.Feedback_Ack{Ack: ack}}
	case r.acked < r.sequence:
		r.acked = r.sequence
		ack := &relayv1.Ack{Sequence: r.acked, Rejects: r.rejects}
		r.rejects = nil
		return &relayv1.Feedback{Frame: &relayv1.Feedback_Ack{Ack: ack}}
	}
	return nil
}
