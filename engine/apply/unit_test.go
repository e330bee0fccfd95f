package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func sortObjects(l []*snapshot.Object) {
	slices.SortFunc(l, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
}

func sortParts(l []*snapshot.Part) {
	slices.SortFunc(l, func(a, b *snapshot.Part) int { return strings.Compare(a.Key, b.Key) })
}

// TestDiffOfAnyTwoOutputs applies deltas to an index and compares it with the
// index of the later Output, over Outputs made at random.
func TestDiffOfAnyTwoOutputs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(waittest.Seed(t), 2))
	var shared []*snapshot.Content
	for range 4 {
		shared = append(shared, &snapshot.Content{})
	}
	var before *snapshot.Output
	index := map[snapshot.Ref]*snapshot.Object{}
	statuses := map[snapshot.Ref]*snapshot.Status{}
	for range 300 {
		after := randomOutput(random, before, shared)
		for cluster, d := range diff(before, after) {
			for _, o := range d.drop {
				require.Equal(t, cluster, o.Ref.Cluster)
				require.Same(t, index[o.Ref], o)
				delete(index, o.Ref)
			}
			for _, o := range d.put {
				require.NotContains(t, index, o.Ref)
				index[o.Ref] = o
			}
			for _, s := range d.dropStatus {
				delete(statuses, s.Ref)
			}
			for _, s := range d.putStatus {
				statuses[s.Ref] = s
			}
		}
		wanted := map[snapshot.Ref]*snapshot.Content{}
		for o := range after.Objects {
			wanted[o.Ref] = o.Content
		}
		require.Len(t, index, len(wanted))
		for ref, content := range wanted {
			require.Same(t, content, index[ref].Content)
			// What was passed over as unchanged may be another pointer.
			for o := range after.Objects {
				if o.Ref == ref {
					index[ref] = o
				}
			}
		}
		require.Len(t, statuses, after.Statuses.Len())
		for s := range after.Statuses.All() {
			require.Same(t, s, statuses[s.Ref])
		}
		before = after
	}
}

// randomOutput keeps some of an Output and makes the rest anew; objects wander
// between parts.
func randomOutput(random *rand.Rand, last *snapshot.Output, shared []*snapshot.Content) *snapshot.Output {
	byKey := map[string]*snapshot.Part{}
	var parts []*snapshot.Part
	var statuses []*snapshot.Status
	for n := range 12 {
		object := &snapshot.Object{
			Ref:     snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: fmt.Sprint(n % 3), Name: fmt.Sprint(n)},
			Content: shared[random.IntN(len(shared))],
		}
		if random.IntN(3) == 0 {
			continue
		}
		key := fmt.Sprint(random.IntN(5))
		if byKey[key] == nil {
			byKey[key] = &snapshot.Part{Key: key}
		}
		byKey[key].Objects = append(byKey[key].Objects, object)
		if random.IntN(2) == 0 {
			statuses = append(statuses, &snapshot.Status{Ref: object.Ref})
		}
	}
	for _, p := range byKey {
		sortObjects(p.Objects)
		parts = append(parts, p)
	}
	sortParts(parts)
	slices.SortFunc(statuses, func(a, b *snapshot.Status) int { return a.Ref.Compare(b.Ref) })
	if last != nil && random.IntN(3) == 0 {
		return &snapshot.Output{Parts: snapshot.ListOf(last.Parts.Slice()), Statuses: last.Statuses}
	}
	return &snapshot.Output{Parts: snapshot.ListOf(parts), Statuses: snapshot.ListOf(statuses)}
}

func TestQueueGoesRankByRank(t *testing.T) {
	t.Parallel()
	q := newQueue([]snapshot.Kind{snapshot.ServiceEntry, snapshot.VirtualService}, &sync.Mutex{})
	wanted := func(k snapshot.Kind, name string) *item {
		return &item{party: party{id: mirror.ID{Kind: k, Name: name}}, object: &snapshot.Object{}}
	}
	se, vs, late := wanted(snapshot.ServiceEntry, "a"), wanted(snapshot.VirtualService, "a"), wanted(snapshot.ServiceEntry, "late")
	gone := &item{party: party{id: mirror.ID{Kind: snapshot.ServiceEntry, Name: "gone"}}}
	goneFirst := &item{party: party{id: mirror.ID{Kind: snapshot.VirtualService, Name: "gone"}}}
	for _, i := range []*item{gone, goneFirst, vs, se} {
		q.push(i)
	}
	require.Same(t, se, q.pop())
	assert.Nil(t, q.pop(), "the VirtualService waits for what it refers to")
	assert.False(t, q.done(se), "it is not to be queued again")
	require.Same(t, vs, q.pop())
	q.push(late)
	require.Same(t, late, q.pop(), "an earlier rank is never held up by a later one")
	assert.False(t, q.idle())
	q.done(late)
	q.done(vs)
	require.Same(t, goneFirst, q.pop(), "deletions come last, in reverse")
	q.done(goneFirst)

	// A retry in flight bars nobody.
	se.history.refusal = &refusal{tries: 1}
	q.push(se)
	require.Same(t, se, q.pop())
	require.Same(t, gone, q.pop())
	q.done(se)
	q.done(gone)
	assert.True(t, q.idle())

	// What is no longer wanted while it waits moves to its new place.
	q.push(se)
	q.push(vs)
	se.object = nil
	require.Same(t, vs, q.pop())
	q.done(vs)
	require.Same(t, se, q.pop())
}

func TestStatusesAreHeldAndObjectsAreNot(t *testing.T) {
	t.Parallel()
	q := newQueue([]snapshot.Kind{snapshot.Destination, snapshot.TrafficPolicy}, &sync.Mutex{})
	status := &item{party: party{id: mirror.ID{Kind: snapshot.TrafficPolicy, Name: "a"}}, status: &wantedStatus{}}
	object := &item{party: party{id: mirror.ID{Kind: snapshot.TrafficPolicy, Name: "b"}}, object: &snapshot.Object{}}
	both := &item{party: party{id: mirror.ID{Kind: snapshot.Destination, Name: "c"}}, object: &snapshot.Object{}, status: &wantedStatus{}, place: queuePlace{statusOnly: true}}
	q.push(status)
	q.push(both)
	q.held++
	assert.Nil(t, q.pop())
	assert.False(t, q.idle(), "held is not done")
	q.push(object)
	require.Same(t, object, q.pop())
	q.done(object)
	q.held--
	require.Same(t, both, q.pop())
	q.done(both)
	require.Same(t, status, q.pop())
}

func TestRepairsOfADisputedObjectAreSpaced(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := &facts{now: now, history: &history{}}
	wait := func() time.Duration {
		var d decision
		if !f.disputed(&d) {
			return 0
		}
		assert.Equal(t, Disputed, d.phase)
		return d.again.Sub(now)
	}
	assert.Zero(t, wait(), "the first is immediate")
	f.history.wrote = now
	f.history.repaired(now)
	assert.Equal(t, repairFirst, wait())
	for range 40 {
		f.history.repaired(now)
		f.history.wrote = now
	}
	assert.Equal(t, repairMost, wait())
	f.asked = true
	assert.Zero(t, wait(), "an Output does not wait")
	f.history.repaired(now.Add(time.Hour))
	assert.Equal(t, uint8(1), f.history.rewrites, "after peace it starts anew")
}
