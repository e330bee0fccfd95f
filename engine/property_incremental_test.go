package engine_test

import (
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestIncrementalEqualsFull: whatever is edited in the inputs of the golden cases, and in random worlds, one translator says
// the same as one that remembers nothing: all of its State, and what explain says of it.
func TestIncrementalEqualsFull(t *testing.T) {
	t.Parallel()
	incrementalEqualsFull(t, 2000, 22, 16, 25)
}

// TestIncrementalEqualsFullOfAllKinds is the same for so many edits that objects of each kind are edited.
func TestIncrementalEqualsFullOfAllKinds(t *testing.T) {
	shard.Only(t, shard.Soak)
	t.Parallel()
	kinds := incrementalEqualsFull(t, 10000, 110, 32, 50)
	if t.Failed() {
		return
	}
	for _, of := range []snapshot.ObjectLists{&snapshot.Management{}, &snapshot.Cluster{}} {
		for kind := range of.Lists {
			_, edited := kinds.Load(kind)
			assert.True(t, edited || kind.Info().ByHand, "no %s was edited", kind)
		}
	}
}

// incrementalEqualsFull makes at least a number of edits: some in each golden case, and some in each of the random worlds. It returns the
// kinds of the objects that were edited.
func incrementalEqualsFull(t *testing.T, edits int32, ofCase, worlds, ofWorld int) *sync.Map {
	t.Helper()
	var made atomic.Int32
	var kinds sync.Map
	seed := int64(waittest.Seed(t) % (1 << 31))
	t.Run("of", func(t *testing.T) {
		inEachCase(t, func(t *testing.T, n int, in *snapshot.Input) {
			t.Helper()
			h := &history{t: t, r: rand.New(rand.NewSource(seed + int64(n))), in: in, others: otherObjects(), kinds: &kinds}
			made.Add(int32(h.run(ofCase, h.edit)))
		})
		for n := range worlds {
			t.Run(fmt.Sprint("world ", n), func(t *testing.T) {
				t.Parallel()
				w := newRandomWorld(seed + int64(n))
				h := &history{t: t, r: w.r, in: w.input(), others: otherObjects(), kinds: &kinds}
				made.Add(int32(h.run(ofWorld, func() string {
					if len(h.in.Clusters) == 0 || w.r.Intn(2) == 0 {
						return h.edit()
					}
					w.take(h.in)
					w.change()
					h.set(w.input())
					return w.last
				})))
			})
		}
	})
	if !t.Failed() {
		assert.GreaterOrEqual(t, made.Load(), edits)
	}
	return &kinds
}

// otherObjects are those of the inputs of the golden cases, and of kinds that none of them has, by kind.
var otherObjects = sync.OnceValue(func() [][]snapshot.APIObject {
	folders, err := filepath.Glob("../testdata/translate/*/in")
	if err != nil {
		panic(err)
	}
	byKind := map[snapshot.Kind][]snapshot.APIObject{
		snapshot.CertificateRequest: {&certificatesv1.CertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: snapshot.DefaultNamespace}}},
	}
	add := func(in *snapshot.Input) {
		for ref, o := range in.Objects {
			byKind[ref.Kind] = append(byKind[ref.Kind], o)
		}
	}
	add(smallWorld())
	for _, folder := range folders {
		in, _, err := offline.Load(offline.Dir(folder))
		if err != nil {
			panic(err)
		}
		add(in)
	}
	var out [][]snapshot.APIObject
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		out = append(out, byKind[kind])
	}
	return out
})

// run makes a number of edits. It returns how many it made.
func (h *history) run(n int, edit func() string) int {
	h.t.Helper()
	translator := engine.New(engine.Options{})
	steps := []step{{"begin", h.in}}
	for made := 0; ; made++ {
		h.state = engine.Translate(h.in)
		if d := compareWith(translator, h.state); d != (difference{}) {
			h.failed(steps, d)
		}
		if made >= n {
			return made
		}
		name := edit()
		for ; h.r.Intn(4) == 0; made++ {
			name += ", " + edit()
		}
		steps = append(steps, step{name, h.in})
		for _, ref := range changedRefs(steps[len(steps)-2].in, h.in) {
			h.kinds.Store(ref.Kind, true)
		}
	}
}

// step is an Input that is translated, with the edits by which it was made.
type step struct {
	edits string
	in    *snapshot.Input
}

// compareWith compares the State of a translator with a new one.
func compareWith(translator *engine.Translator, want *snapshot.State) difference {
	got := translator.Translate(want.Input)
	if d := compareStates(want, got); d != (difference{}) {
		return d
	}
	return compareExplained(explain.New(want), explain.New(got))
}

// compareExplained compares what users are told: the list of one kind, and one object of each kind. All of them would take
// several times as long as all else.
func compareExplained(want, got *explain.Index) difference {
	c := newComparison()
	at := len(want.Refs(snapshot.Destination)) + len(want.Refs(snapshot.TrafficPolicy)) + len(want.Refs(snapshot.AccessPolicy))
	kinds := explain.Kinds()
	listed := kinds[at%len(kinds)]
	if d := c.compare(reflect.ValueOf(want.List(listed)), reflect.ValueOf(got.List(listed))); d != (difference{}) {
		return d.in("list " + listed.String())
	}
	for _, kind := range kinds {
		if refs := want.Refs(kind); len(refs) > 0 {
			ref := refs[at%len(refs)]
			if d := c.compare(reflect.ValueOf(want.Describe(ref)), reflect.ValueOf(got.Describe(ref))); d != (difference{}) {
				return d.in("describe " + ref.String())
			}
		}
	}
	return difference{}
}

// failsAfter is how a translator differs after the last of some steps.
func failsAfter(steps []step) difference {
	translator := engine.New(engine.Options{})
	last := len(steps) - 1
	for _, s := range steps[:last] {
		translator.Translate(s.in)
	}
	return compareWith(translator, engine.Translate(steps[last].in))
}

// failed fails with the fewest steps that were found to give a difference.
func (h *history) failed(steps []step, d difference) {
	h.t.Helper()
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size < len(steps); {
			fewer := slices.Delete(slices.Clone(steps), at, at+size)
			if less := failsAfter(fewer); less != (difference{}) {
				steps, d = fewer, less
			} else {
				at += size
			}
		}
	}
	var text strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&text, "%d. ..., %s\n", i+1, s.edits)
		if i > 0 {
			for _, ref := range changedRefs(steps[i-1].in, s.in) {
				fmt.Fprintf(&text, "   %s\n", ref)
			}
		}
	}
	require.Fail(h.t, "incremental translation gives another State", "%s: %s\nafter\n%s", d.path, d.text, text.String())
}

// TestOrderDoesNotMatter: neither the order in which objects arrive while they
// are translated, nor that of lists without an order changes anything.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRandomWorld(seed)
			for range 5 {
				w.change()
			}
			in := w.input()
			want := engine.Translate(in)
			reordered, err := enginetest.Reordered(in, w.r.Shuffle)
			require.NoError(t, err)
			requireSameState(t, want, engine.Translate(reordered), "reordered")
			requireSameState(t, want, arriving(t, w.r, in), "arriving")
		})
	}
}

// requireSameState fails with the first difference of two States.
func requireSameState(t *testing.T, want, got *snapshot.State, what string) {
	t.Helper()
	if d := compareStates(want, got); d != (difference{}) {
		require.Fail(t, "another State", "%s: %s: %s", what, d.path, d.text)
	}
}

// arriving translates an Input to which objects are added one by one, in any
// order, and returns the last State. In between it translates now and then.
func arriving(t *testing.T, r *rand.Rand, in *snapshot.Input) *snapshot.State {
	t.Helper()
	type arrival struct {
		cluster string
		object  snapshot.APIObject
	}
	var arrivals []arrival
	for ref, object := range in.Objects {
		arrivals = append(arrivals, arrival{ref.Cluster, object})
	}
	r.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })

	now := *in
	now.Management = &snapshot.Management{Namespace: in.Management.Namespace}
	now.Clusters = nil
	for _, c := range in.Clusters {
		now.Clusters = append(now.Clusters, &snapshot.Cluster{Name: c.Name, Domain: c.Domain, Sync: c.Sync, Reason: c.Reason})
	}
	translator, next := engine.New(engine.Options{}), &now
	for _, a := range arrivals {
		var err error
		next, err = next.With(a.cluster, a.object)
		require.NoError(t, err)
		if r.Intn(len(arrivals)) < 6 {
			translator.Translate(next)
		}
	}
	require.Equal(t, refs(in), refs(next), "the lists of an Input are ascending")
	return translator.Translate(next)
}

// refs names the objects of an Input in their order.
func refs(in *snapshot.Input) []snapshot.Ref {
	var all []snapshot.Ref
	for ref := range in.Objects {
		all = append(all, ref)
	}
	return all
}

// take has the world go on from an Input.
func (w *randomWorld) take(in *snapshot.Input) {
	base, m, template := *in, *in.Management, *in.Management
	template.VirtualMeshes = w.base.Management.VirtualMeshes // others are made from it
	base.Management = &template
	w.base, w.fails = &base, in.Failures
	w.traffic, w.access, w.depends, w.virtual = m.TrafficPolicies, m.AccessPolicies, m.ServiceDependencies, m.VirtualDestinations
	w.meshes, w.setting, w.storedWorkloads = m.VirtualMeshes, m.Settings, m.Workloads
	w.stored, w.externals = nil, nil
	for _, d := range m.Destinations {
		if d.Spec.KubeService != nil {
			w.stored = append(w.stored, d)
		} else {
			w.externals = append(w.externals, d)
		}
	}
}
