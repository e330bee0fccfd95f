package relay

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// world is the objects of a sender.
type world map[string]map[Key][]byte

func (w world) Object(kind string, of Key) ([]byte, bool) {
	o, exists := w[kind][of]
	return o, exists
}

func (w world) Version(string) uint64 { return 0 }

// copyOf is the store of a receiver. It fails the test if an object is removed that was never there.
type copyOf struct {
	t       *testing.T
	objects world
	// poison: objects that begin with it are not taken.
	poison rune
	taken  int
}

func (c *copyOf) Take(kind string, puts []Object, removals []Key) map[Key]error {
	rejected := map[Key]error{}
	for _, o := range puts {
		c.taken++
		if c.poison != 0 && strings.HasPrefix(string(o.Bytes), string(c.poison)) {
			rejected[o.Key] = errors.New("it is poisoned")
			continue
		}
		c.objects[kind][o.Key] = o.Bytes
	}
	for _, key := range removals {
		_, known := c.objects[kind][key]
		assert.True(c.t, known || c.poison != 0, "%s %v is removed, which was never there", kind, key)
		delete(c.objects[kind], key)
	}
	return rejected
}

func (c *copyOf) Complete(kind string, _ uint64, held func(Key) bool) {
	for key := range c.objects[kind] {
		assert.True(c.t, held(key), "%s %v", kind, key)
	}
}

func newWorld(kinds ...string) world {
	w := world{}
	for _, kind := range kinds {
		w[kind] = map[Key][]byte{}
	}
	return w
}

// link is a stream between both, of which each half keeps what is on its way, and which may end at any time. Frames pass through
// their encoding.
type link struct {
	up   []*relayv1.Data
	down []*relayv1.Feedback
}

func through[M proto.Message](t *testing.T, m, empty M) M {
	t.Helper()
	raw, err := proto.Marshal(m)
	require.NoError(t, err)
	require.Less(t, len(raw), 4<<20, "more than gRPC takes")
	require.NoError(t, proto.Unmarshal(raw, empty))
	return empty
}

// step moves one frame, of which side chance says; false if nothing moves.
func (l *link) step(t *testing.T, s *Sender, r *Receiver, chance *rand.Rand) bool {
	t.Helper()
	for _, move := range chance.Perm(4) {
		switch {
		case move == 0:
			if frame := s.Next(); frame != nil {
				l.up = append(l.up, through(t, frame, &relayv1.Data{}))
				return true
			}
		case move == 1:
			if frame := r.Next(); frame != nil {
				l.down = append(l.down, through(t, frame, &relayv1.Feedback{}))
				return true
			}
		case move == 2 && len(l.up) > 0:
			require.NoError(t, r.Receive(l.up[0]))
			l.up = l.up[1:]
			return true
		case move == 3 && len(l.down) > 0:
			require.NoError(t, s.Receive(l.down[0]))
			l.down = l.down[1:]
			return true
		}
	}
	return false
}

func (l *link) settle(t *testing.T, s *Sender, r *Receiver, chance *rand.Rand) {
	t.Helper()
	for steps := 0; l.step(t, s, r, chance); steps++ {
		require.Less(t, steps, 1_000_000, "no end")
	}
}

// connect is a new stream, of the newest version of the protocol.
func connect(s *Sender, r *Receiver) *link { return connectIn(Protocol, s, r) }

// connectIn is a new stream of a version of the protocol.
func connectIn(protocol uint32, s *Sender, r *Receiver) *link {
	s.Begin()
	r.Begin(protocol)
	return &link{}
}

func nothing(string) bool { return false }

// TestReplicasConverge: whatever changes while frames are on their way, streams end, and sides start again, the receiver ends up with
// what the sender has.
func TestReplicasConverge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(seed, 0))
			kinds := []string{"a", "b", "c"}
			source := newWorld(kinds...)
			store := &copyOf{t: t, objects: newWorld(kinds...)}
			s, r := NewSender(source, kinds...), NewReceiver(store, kinds...)
			between := func() *link { return connectIn(uint32(OldestProtocol+chance.IntN(Protocol)), s, r) }
			l := between()
			edit := func() {
				kind, key := kinds[chance.IntN(3)], Key{"ns", fmt.Sprint(chance.IntN(20))}
				if chance.IntN(3) == 0 {
					delete(source[kind], key)
				} else {
					object := make([]byte, 1+chance.IntN(1<<(4+chance.IntN(14))))
					object[0] = byte(chance.Uint32())
					source[kind][key] = object
				}
				s.Changed(kind, key)
			}
			for range 40 {
				edit()
			}
			for range 300 {
				switch chance.IntN(20) {
				case 0:
					l = between()
				case 1: // the sender starts again, and reads its objects in some order
					s = NewSender(source, kinds...)
					l = between()
					for kind, objects := range source {
						for key := range objects {
							s.Changed(kind, key)
						}
					}
				case 2: // the receiver starts again
					store.objects = newWorld(kinds...)
					r = NewReceiver(store, kinds...)
					l = between()
				case 3, 4, 5, 6:
					edit()
				case 7:
					s.SetComplete(kinds[chance.IntN(3)], chance.IntN(2) == 0)
				default:
					l.step(t, s, r, chance)
				}
			}
			for _, kind := range kinds {
				s.SetComplete(kind, true)
			}
			l.settle(t, s, r, chance)
			waiting, complete := r.Complete(nothing)
			assert.True(t, complete, "%s is not complete", waiting)
			for _, kind := range kinds {
				assert.True(t, maps.EqualFunc(source[kind], store.objects[kind], func(a, b []byte) bool { return string(a) == string(b) }), "kind %s", kind)
			}
			assert.Zero(t, r.Mismatches())
			assert.Zero(t, s.Unacked())
		})
	}
}

// TestNothingIsRemovedBeforeAllWasRead: a sender that starts again and has not read its objects removes none of the receiver.
func TestNothingIsRemovedBeforeAllWasRead(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source := newWorld("a")
	for n := range 100 {
		source["a"][Key{"ns", fmt.Sprint(n)}] = []byte{1, byte(n)}
	}
	store := &copyOf{t: t, objects: newWorld("a")}
	s, r := NewSender(source, "a"), NewReceiver(store, "a")
	l := connect(s, r)
	all := func() {
		for key := range source["a"] {
			s.Changed("a", key)
		}
	}
	all()
	s.SetComplete("a", true)
	l.settle(t, s, r, chance)
	require.Len(t, store.objects["a"], 100)

	taken := store.taken
	s = NewSender(source, "a")
	delete(source["a"], Key{"ns", "7"})
	l = connect(s, r)
	s.Changed("a", Key{"ns", "1"})
	l.settle(t, s, r, chance)
	_, complete := r.Complete(nothing)
	assert.False(t, complete)
	assert.Len(t, store.objects["a"], 100)
	all()
	s.SetComplete("a", true)
	l.settle(t, s, r, chance)
	_, complete = r.Complete(nothing)
	assert.True(t, complete)
	assert.Len(t, store.objects["a"], 99)
	assert.Equal(t, taken, store.taken, "what was there is not sent again")
}

// TestNothingIsRemovedWhileAllIsReadAgain: also of a receiver that has everything.
func TestNothingIsRemovedWhileAllIsReadAgain(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source := newWorld("a")
	store := &copyOf{t: t, objects: newWorld("a")}
	s, r := NewSender(source, "a"), NewReceiver(store, "a")
	key := Key{"ns", "1"}
	source["a"][key] = []byte("one")
	s.Changed("a", key)
	s.SetComplete("a", true)
	l := connect(s, r)
	l.settle(t, s, r, chance)
	require.Len(t, store.objects["a"], 1)
	s.SetComplete("a", false)
	delete(source["a"], key)
	s.Changed("a", key)
	l.settle(t, s, r, chance)
	assert.Len(t, store.objects["a"], 1)
	s.SetComplete("a", true)
	l.settle(t, s, r, chance)
	assert.Empty(t, store.objects["a"])
}

// TestAStreamThatEndsCostsLittle: after a stream ended, nothing but digests travels if nothing changed.
func TestAStreamThatEndsCostsLittle(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source := newWorld("a", "b")
	store := &copyOf{t: t, objects: newWorld("a", "b")}
	s, r := NewSender(source, "a", "b"), NewReceiver(store, "a", "b")
	for n := range 1000 {
		key := Key{"ns", fmt.Sprint(n)}
		source["a"][key] = make([]byte, 1000)
		s.Changed("a", key)
	}
	s.SetComplete("a", true)
	s.SetComplete("b", true)
	connect(s, r).settle(t, s, r, chance)

	for protocol, want := range map[uint32]int{1: 4, 2: 2} {
		s.Begin()
		r.Begin(protocol)
		bytes, frames := 0, 0
		for {
			d, f := s.Next(), r.Next()
			if d != nil {
				require.NoError(t, r.Receive(d))
				bytes, frames = bytes+proto.Size(d), frames+1
			}
			if f != nil {
				require.NoError(t, s.Receive(f))
				bytes, frames = bytes+proto.Size(f), frames+1
			}
			if d == nil && f == nil {
				break
			}
		}
		_, complete := r.Complete(nothing)
		assert.True(t, complete)
		assert.Less(t, bytes, 200)
		assert.Equal(t, want, frames, "two for each kind, or two for all")
	}
}

// TestOneObjectHoldsUpNoOther: what is rejected is not sent again as it is, and all else arrives.
func TestOneObjectHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source := newWorld("a")
	source["a"][Key{"", "bad"}] = []byte("!bad")
	source["a"][Key{"", "large"}] = make([]byte, MaxObject+1)
	source["a"][Key{"", "good"}] = []byte("good")
	store := &copyOf{t: t, objects: newWorld("a"), poison: '!'}
	s, r := NewSender(source, "a"), NewReceiver(store, "a")
	for key := range source["a"] {
		s.Changed("a", key)
	}
	s.SetComplete("a", true)
	for range 3 {
		connect(s, r).settle(t, s, r, chance)
	}
	_, complete := r.Complete(nothing)
	assert.True(t, complete)
	assert.Equal(t, map[Key][]byte{{"", "good"}: []byte("good")}, store.objects["a"])
	assert.Equal(t, 2, store.taken, "the bad one was sent once")
	source["a"][Key{"", "bad"}] = []byte("better")
	s.Changed("a", Key{"", "bad"})
	connect(s, r).settle(t, s, r, chance)
	assert.Len(t, store.objects["a"], 2)
	var large []string
	s.Large(func(kind string, of Key, size int) { large = append(large, fmt.Sprint(kind, of, size)) })
	assert.Equal(t, []string{fmt.Sprint("a", Key{"", "large"}, MaxObject+1)}, large)

	// One that becomes too large stays as it was.
	source["a"][Key{"", "good"}] = make([]byte, MaxObject+1)
	s.Changed("a", Key{"", "good"})
	l := connect(s, r)
	l.settle(t, s, r, chance)
	_, complete = r.Complete(nothing)
	assert.True(t, complete)
	assert.Equal(t, "good", string(store.objects["a"][Key{"", "good"}]))
	source["a"][Key{"", "good"}] = []byte("small again")
	s.Changed("a", Key{"", "good"})
	l.settle(t, s, r, chance)
	assert.Equal(t, "small again", string(store.objects["a"][Key{"", "good"}]))
	delete(source["a"], Key{"", "large"})
	s.Changed("a", Key{"", "large"})
	l.settle(t, s, r, chance)
	s.Large(func(string, Key, int) { t.Error("none is too large any more") })
}

// TestADifferenceIsFoundAndMended: an object of the receiver that is other than its digest says is noticed with the next Complete.
func TestADifferenceIsFoundAndMended(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source := newWorld("a")
	store := &copyOf{t: t, objects: newWorld("a")}
	s, r := NewSender(source, "a"), NewReceiver(store, "a")
	for n := range 10 {
		key := Key{"ns", fmt.Sprint(n)}
		source["a"][key] = []byte{byte(n)}
		s.Changed("a", key)
	}
	s.SetComplete("a", true)
	l := connect(s, r)
	l.settle(t, s, r, chance)
	r.kinds["a"].held.remove(Key{"ns", "3"}) // a fault in the receiver
	delete(store.objects["a"], Key{"ns", "3"})
	source["a"][Key{"ns", "4"}] = []byte("other")
	s.Changed("a", Key{"ns", "4"})
	l.settle(t, s, r, chance)
	assert.Equal(t, 1, r.Mismatches())
	assert.Len(t, store.objects["a"], 10)
}

// TestKindsThatOneSideDoesNotKnow: neither waits for them.
func TestKindsThatOneSideDoesNotKnow(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source := newWorld("a", "new")
	source["new"][Key{"", "n"}] = []byte("n")
	store := &copyOf{t: t, objects: newWorld("a", "old")}
	s, r := NewSender(source, "a", "new"), NewReceiver(store, "old", "a")
	s.Changed("new", Key{"", "n"})
	s.SetComplete("a", true)
	s.SetComplete("new", true)
	connect(s, r).settle(t, s, r, chance)
	_, complete := r.Complete(nothing)
	assert.True(t, complete)
}

// FuzzReceive: no frame of a sender, in whatever order, is more than an error.
func FuzzReceive(f *testing.F) {
	for _, frame := range []*relayv1.Data{
		{Frame: &relayv1.Data_Change{Change: &relayv1.Change{Sequence: 1, Kind: "a", Puts: []*relayv1.Put{{Name: &relayv1.Name{Name: "x"}, Hash: make([]byte, hashSize), Object: []byte("x")}}}}},
		{Frame: &relayv1.Data_Ask{Ask: &relayv1.Ask{Kind: "a"}}},
		{Frame: &relayv1.Data_Complete{Complete: &relayv1.Complete{Kind: "a", Digest: []byte{1}}}},
		{Frame: &relayv1.Data_Same{Same: &relayv1.Same{Incomplete: []string{"a"}, Seen: []*relayv1.Seen{{Kind: "b", Version: 7}}}}},
		{},
	} {
		raw, err := proto.Marshal(frame)
		require.NoError(f, err)
		f.Add(raw, raw)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		store := &copyOf{t: t, objects: newWorld("a"), poison: '!'}
		r := NewReceiver(store, "a")
		r.Begin(Protocol)
		for _, raw := range [][]byte{first, second} {
			d := &relayv1.Data{}
			if proto.Unmarshal(raw, d) == nil && r.Receive(d) != nil {
				return
			}
			for r.Next() != nil {
			}
		}
	})
}
