package relay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

func TestCommon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		oldest, newest, want uint32
		ok                   bool
	}{
		"the version before":   {1, 1, 1, true},
		"this one":             {1, 2, 2, true},
		"a later one":          {2, 9, 2, true},
		"too new":              {3, 9, 2, false},
		"says nothing of it":   {0, 0, 0, false},
		"ends before it began": {2, 1, 1, false},
	} {
		got, ok := Common(&relayv1.Hello{OldestProtocol: c.oldest, NewestProtocol: c.newest})
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.ok, ok, name)
	}
}

// pair are both sides of a set of three kinds, of which the last is not complete, after everything has arrived.
func pair(t *testing.T, chance *rand.Rand) (source world, store *copyOf, s *Sender, r *Receiver) {
	t.Helper()
	kinds := []string{"a", "b", "c"}
	source, store = newWorld(kinds...), &copyOf{t: t, objects: newWorld(kinds...)}
	s, r = NewSender(source, kinds...), NewReceiver(store, kinds...)
	for n := range 30 {
		kind, key := kinds[n%3], Key{"ns", fmt.Sprint(n)}
		source[kind][key] = []byte(fmt.Sprint("object ", n))
		s.Changed(kind, key)
	}
	s.SetComplete("a", true)
	s.SetComplete("b", true)
	connect(s, r).settle(t, s, r, chance)
	return source, store, s, r
}

// TestAllKindsAtOnce: what is the same is complete, but for kinds of which the sender may not know everything; what differs is found.
func TestAllKindsAtOnce(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	source, store, s, r := pair(t, chance)
	taken := store.taken
	connect(s, r).settle(t, s, r, chance)
	waiting, complete := r.Complete(nothing)
	assert.False(t, complete)
	assert.Equal(t, "c", waiting)
	s.SetComplete("c", true)
	l := connect(s, r)
	l.settle(t, s, r, chance)
	_, complete = r.Complete(nothing)
	assert.True(t, complete)
	assert.Equal(t, taken, store.taken, "nothing is sent again")

	source["b"][Key{"ns", "1"}] = []byte("other")
	s.Changed("b", Key{"ns", "1"})
	l.settle(t, s, r, chance)
	assert.Equal(t, "other", string(store.objects["b"][Key{"ns", "1"}]), "changes follow as before")
	delete(source["a"], Key{"ns", "0"})
	s.Changed("a", Key{"ns", "0"})
	connect(s, r).settle(t, s, r, chance)
	assert.NotContains(t, store.objects["a"], Key{"ns", "0"}, "a change while there was no stream")
	assert.Equal(t, taken+1, store.taken)
	assert.Zero(t, r.Mismatches())
}

// TestSameThatIsNot: a receiver does not believe that it has everything if it has something else.
func TestSameThatIsNot(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(waittest.Seed(t), 0))
	_, store, s, r := pair(t, chance)
	s.SetComplete("c", true)
	l := connect(s, r)
	require.NoError(t, s.Receive(r.Next()))
	r.kinds["b"].held.remove(Key{"ns", "1"}) // a fault in the receiver
	delete(store.objects["b"], Key{"ns", "1"})
	l.settle(t, s, r, chance)
	assert.Equal(t, 1, r.Mismatches())
	_, complete := r.Complete(nothing)
	assert.True(t, complete)
	assert.Len(t, store.objects["b"], 10)
}

// FuzzSend: no frame of a receiver, in whatever order, is more than an error; what is sent stays within its bounds.
func FuzzSend(f *testing.F) {
	for _, frame := range []*relayv1.Feedback{
		{Frame: &relayv1.Feedback_Held{Held: &relayv1.Held{Kind: "a", Count: 1, Digest: make([]byte, hashSize)}}},
		{Frame: &relayv1.Feedback_Have{Have: &relayv1.Have{Kind: "a", Entries: []*relayv1.Entry{{Name: &relayv1.Name{Name: "x"}, Hash: []byte{1}}}, Last: true}}},
		{Frame: &relayv1.Feedback_Ack{Ack: &relayv1.Ack{Sequence: 1}}},
		{Frame: &relayv1.Feedback_HeldAll{HeldAll: &relayv1.HeldAll{Count: 1}}},
		{},
	} {
		raw, err := proto.Marshal(frame)
		require.NoError(f, err)
		f.Add(raw, raw, raw)
	}
	f.Fuzz(func(t *testing.T, first, second, third []byte) {
		source := newWorld("a")
		source["a"][Key{"", "x"}] = []byte("x")
		s := NewSender(source, "a")
		s.Begin()
		s.Changed("a", Key{"", "x"})
		s.SetComplete("a", true)
		for _, raw := range [][]byte{first, second, third} {
			d := &relayv1.Feedback{}
			if proto.Unmarshal(raw, d) == nil && s.Receive(d) != nil {
				return
			}
			for sent := 0; s.Next() != nil; sent++ {
				if sent > len(raw)+10 {
					t.Fatal("no end")
				}
			}
		}
	})
}

// FuzzDecode: no bytes of an object are more than an error, of whatever kind they are said to be; those that are taken have the name as
// which they were sent.
func FuzzDecode(f *testing.F) {
	f.Add("core/v1/Service", "default", "x", []byte("\x0a\x07\x0a\x01x\x1a\x02ns"))
	f.Add("networking.istio.io/v1/Gateway", "", "x", []byte(`{"metadata":{"name":"x"},"spec":{"servers":[null]}}`))
	f.Add("written:networking.istio.io/v1/Gateway", "", "x", []byte{8, 1})
	f.Fuzz(func(t *testing.T, name, namespace, object string, raw []byte) {
		if _, written := WrittenNamed(name); written {
			if o, err := DecodeWritten(raw); err == nil {
				again, err := EncodeWritten(o)
				require.NoError(t, err)
				back, err := DecodeWritten(again)
				require.NoError(t, err)
				require.Equal(t, o, back)
			}
			return
		}
		kind, known := KindNamed(name)
		if !known || kind.New() == nil {
			return
		}
		o, err := Decode(kind, Key{namespace, object}, raw)
		if err == nil && (o.GetNamespace() != namespace || o.GetName() != object) {
			t.Errorf("%s/%s was sent as %s/%s", o.GetNamespace(), o.GetName(), namespace, object)
		}
	})
}
