package apply_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAClusterWithoutACredential is written to again when it has one, and what was asked for meanwhile waits.
func TestAClusterWithoutACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	object := func(host string) *snapshot.Object {
		return w.object(snapshot.VirtualService, one, "a", hosts(host))
	}
	sink.apply(output([]string{one}, object("a")))
	before := w.get(snapshot.VirtualService, "a").GetResourceVersion()

	sink.source.Set(one, "", nil, errors.New("its Secret holds no kubeconfig"))
	require.NoError(t, sink.Settled(t.Context()))
	sink.apply(output([]string{one}, object("b")))
	assert.Equal(t, before, w.get(snapshot.VirtualService, "a").GetResourceVersion())

	sink.Set(one, w.config)
	w.eventually("what was asked for is written", func() bool {
		return w.get(snapshot.VirtualService, "a").GetResourceVersion() != before
	})
}

// listener counts what it is told of the objects of a link.
type listener struct {
	mu      sync.Mutex
	changed map[mirror.ID]int
}

func (l *listener) Turned()                                    {}
func (l *listener) Relisted(*mirror.Connection, snapshot.Kind) {}
func (l *listener) Incomparable(mirror.ID, error)              {}
func (l *listener) Changed(_ *mirror.Connection, objects []mirror.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range objects {
		l.changed[of]++
	}
}

// TestOthersHearOfAWrite: whoever else listens to a cluster is told once of what the Sink writes there, also where the answer comes before
// the event of the watch. The replica of an agent would never report it.
func TestOthersHearOfAWrite(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"the event comes with the answer": 0, "the event comes after the answer": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				b.late = late
				other := &listener{changed: map[mirror.ID]int{}}
				b.sink.source.Link(one).Listen(other)
				out := policies(1, "a")
				b.sink.Apply(out)
				require.NoError(b, b.sink.Settled(b.Context()))
				time.Sleep(2 * late)
				synctest.Wait()
				other.mu.Lock()
				defer other.mu.Unlock()
				assert.Equal(b, map[mirror.ID]int{mirror.IDOf(policyObject("policy-00000", "a").Ref): 1}, other.changed)
			})
		})
	}
}
