package relay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// way is one direction between the hub and an agent, over streams that end at any time.
type way struct {
	t     *testing.T
	names []string
	from  world
	to    *counted
	s     *Sender
	r     *Receiver
	l     *link
}

// counted is a copyOf that counts what is removed from it.
type counted struct {
	*copyOf
	removed int
}

func (c *counted) Take(kind string, puts []Object, removals []Key) map[Key]error {
	c.removed += len(removals)
	return c.copyOf.Take(kind, puts, removals)
}

func newWay(t *testing.T, names ...string) *way {
	t.Helper()
	w := &way{t: t, names: names, from: newWorld(names...), to: &counted{copyOf: &copyOf{t: t, objects: newWorld(names...)}}}
	w.s, w.r = NewSender(w.from, names...), NewReceiver(w.to, names...)
	w.l = connect(w.s, w.r)
	return w
}

// cut ends the stream, with all that is on its way. The next one is of some version of the protocol.
func (w *way) cut(chance *rand.Rand) {
	w.l = connectIn(uint32(OldestProtocol+chance.IntN(Protocol-OldestProtocol+1)), w.s, w.r)
}

// sends starts the sender again, which reads its objects once more.
func (w *way) sends(chance *rand.Rand, complete bool) {
	w.s = NewSender(w.from, w.names...)
	w.cut(chance)
	for _, kind := range w.names {
		w.s.Changed(kind, slices.SortedFunc(maps.Keys(w.from[kind]), byName)...)
		w.s.SetComplete(kind, complete)
	}
}

func byName(a, b Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// set is what is to be sent of an object; nil if there is none any more.
func (w *way) set(kind string, of Key, raw []byte) {
	if raw == nil {
		delete(w.from[kind], of)
	} else {
		w.from[kind][of] = raw
	}
	w.s.Changed(kind, of)
}

// drawnCluster is a cluster of a drawn world: what is there is reported, and what the hub wants there is written.
type drawnCluster struct {
	is   *snapshot.Cluster
	kind map[string]snapshot.Kind
	// there are the objects, and gone those that were deleted.
	there, gone map[string]map[Key]snapshot.APIObject
	up, down    *way
	// seen: everything was read once since the hub started.
	seen bool
}

func newDrawnCluster(t *testing.T, c *snapshot.Cluster) *drawnCluster {
	t.Helper()
	d := &drawnCluster{is: c, kind: map[string]snapshot.Kind{}, there: map[string]map[Key]snapshot.APIObject{}, gone: map[string]map[Key]snapshot.APIObject{}}
	var reported, written []string
	for k, list := range c.Lists {
		name := KindName(k)
		reported, d.kind[name] = append(reported, name), k
		d.there[name], d.gone[name] = map[Key]snapshot.APIObject{}, map[Key]snapshot.APIObject{}
		for i := range list.Len() {
			o := list.At(i)
			d.there[name][Key{o.GetNamespace(), o.GetName()}] = o
		}
	}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		written = append(written, KindName(k))
	}
	d.up, d.down = newWay(t, reported...), newWay(t, written...)
	for kind, objects := range d.there {
		for of := range objects {
			d.changed(kind, of)
		}
		d.up.s.SetComplete(kind, true)
	}
	return d
}

func (d *drawnCluster) changed(kind string, of Key) {
	o := d.there[kind][of]
	if o == nil {
		d.up.set(kind, of, nil)
		return
	}
	raw, err := Encode(o)
	require.NoError(d.up.t, err)
	d.up.set(kind, of, raw)
}

// edit deletes an object, brings back one that was deleted, or changes a label by which services are federated.
func (d *drawnCluster) edit(chance *rand.Rand) {
	some := func(from map[string]map[Key]snapshot.APIObject) (kind string, of Key, ok bool) {
		kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(kind string) bool { return len(from[kind]) == 0 })
		if len(kinds) == 0 {
			return "", Key{}, false
		}
		kind = kinds[chance.IntN(len(kinds))]
		keys := slices.SortedFunc(maps.Keys(from[kind]), byName)
		return kind, keys[chance.IntN(len(keys))], true
	}
	move := func(from, to map[string]map[Key]snapshot.APIObject) {
		if kind, of, ok := some(from); ok {
			to[kind][of] = from[kind][of]
			delete(from[kind], of)
			d.changed(kind, of)
		}
	}
	switch chance.IntN(3) {
	case 0:
		move(d.there, d.gone)
	case 1:
		move(d.gone, d.there)
	case 2:
		services := KindName(snapshot.Service)
		_, of, ok := some(map[string]map[Key]snapshot.APIObject{services: d.there[services]})
		if !ok {
			return
		}
		o, _ := d.there[services][of].DeepCopyObject().(snapshot.APIObject)
		labels := maps.Clone(o.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels["federated"] = []string{"true", "false"}[chance.IntN(2)]
		o.SetLabels(labels)
		d.there[services][of] = o
		d.changed(services, of)
	}
}

// read is the cluster with the objects that are there.
func (d *drawnCluster) read(objects map[string]map[Key]snapshot.APIObject, sync snapshot.Sync) *snapshot.Cluster {
	c := *d.is
	c.Sync = sync
	for k, list := range c.Lists {
		sorted := slices.SortedFunc(maps.Values(objects[KindName(k)]), func(a, b snapshot.APIObject) int {
			return snapshot.RefOf(k, a).Compare(snapshot.RefOf(k, b))
		})
		require.NoError(d.up.t, list.Set(sorted))
	}
	return &c
}

// received is the cluster as the hub has it.
func (d *drawnCluster) received() *snapshot.Cluster {
	objects := map[string]map[Key]snapshot.APIObject{}
	for kind, raw := range d.up.to.objects {
		objects[kind] = map[Key]snapshot.APIObject{}
		for of, bytes := range raw {
			o, err := Decode(d.kind[kind], of, bytes)
			require.NoError(d.up.t, err)
			objects[kind][of] = o
		}
	}
	_, complete := d.up.r.Complete(nothing)
	d.seen = d.seen || complete
	switch {
	case complete:
		return d.read(objects, snapshot.Synced)
	case d.seen:
		return d.read(objects, snapshot.Stale)
	}
	return d.read(objects, snapshot.Unsynced)
}

// drawnWorld is a few clusters with services, policies and a VirtualMesh.
type drawnWorld struct {
	t        *testing.T
	in       *snapshot.Input
	clusters []*drawnCluster
	// moves says which frame moves next. What is edited and what ends does not depend on it, and is the same each time for a seed.
	moves *rand.Rand
}

func drawWorld(t *testing.T, chance, moves *rand.Rand) *drawnWorld {
	t.Helper()
	size := enginetest.Size{Clusters: 2 + chance.IntN(2), Services: 1 + chance.IntN(3), FederateEvery: 1 + chance.IntN(3), Policies: chance.IntN(5), Pods: 1 + chance.IntN(2)}
	w := &drawnWorld{t: t, in: enginetest.World(size), moves: moves}
	for _, c := range w.in.Clusters {
		w.clusters = append(w.clusters, newDrawnCluster(t, c))
	}
	return w
}

func (w *drawnWorld) translate(read func(*drawnCluster) *snapshot.Cluster) *snapshot.Output {
	in := *w.in
	in.Clusters = nil
	for _, d := range w.clusters {
		in.Clusters = append(in.Clusters, read(d))
	}
	return engine.Translate(&in).Output
}

// documents are what is to be written of each cluster, by kind and name.
func (w *drawnWorld) documents(out *snapshot.Output) map[string]world {
	documents := map[string]world{}
	for _, d := range w.clusters {
		documents[d.is.Name] = newWorld(d.down.names...)
	}
	for cluster, objects := range out.ByCluster() {
		if documents[cluster] == nil {
			continue // of the management cluster
		}
		for _, o := range objects {
			raw, err := json.Marshal(map[string]any{"labels": o.Content.Labels, "annotations": o.Content.Annotations, "spec": o.Content.Spec})
			require.NoError(w.t, err)
			documents[cluster][KindName(o.Ref.Kind)][Key{o.Ref.Namespace, o.Ref.Name}] = raw
		}
	}
	return documents
}

// hub translates what it has, and wants what follows from that where nothing is frozen.
func (w *drawnWorld) hub() *snapshot.Output {
	out := w.translate((*drawnCluster).received)
	documents := w.documents(out)
	for _, d := range w.clusters {
		if out.IsFrozen(d.is.Name) {
			continue
		}
		for kind, objects := range documents[d.is.Name] {
			for of, raw := range objects {
				if string(d.down.from[kind][of]) != string(raw) {
					d.down.set(kind, of, raw)
				}
			}
			for of := range d.down.from[kind] {
				if objects[of] == nil {
					d.down.set(kind, of, nil)
				}
			}
			d.down.s.SetComplete(kind, true)
		}
	}
	return out
}

// restart has the hub start again, which knows nothing then.
func (w *drawnWorld) restart(chance *rand.Rand) {
	for _, d := range w.clusters {
		d.up.to.objects, d.seen = newWorld(d.up.names...), false
		d.up.r = NewReceiver(d.up.to, d.up.names...)
		d.up.cut(chance)
		for kind := range d.down.from {
			d.down.from[kind] = map[Key][]byte{}
		}
		d.down.sends(chance, false)
	}
}

// fault ends a stream, or has an agent start again.
func (w *drawnWorld) fault(chance *rand.Rand) {
	d := w.clusters[chance.IntN(len(w.clusters))]
	switch chance.IntN(4) {
	case 0:
		d.up.cut(chance)
	case 1:
		d.down.cut(chance)
	case 2:
		d.up.sends(chance, true)
	case 3: // the agent knows what stands, and not what it was told
		d.down.r = NewReceiver(d.down.to, d.down.names...)
		d.down.to.objects = newWorld(d.down.names...)
		d.down.cut(chance)
	}
}

func (w *drawnWorld) steps(n int) {
	for range n {
		d := w.clusters[w.moves.IntN(len(w.clusters))]
		between := []*way{d.up, d.down}[w.moves.IntN(2)]
		between.l.step(w.t, between.s, between.r, w.moves)
	}
}

// removed is how many objects were removed, on the hub and in the clusters.
func (w *drawnWorld) removed() (n int) {
	for _, d := range w.clusters {
		n += d.up.to.removed + d.down.to.removed
	}
	return n
}

// settle waits until nothing is on its way, and checks that all is as it is without a relay.
func (w *drawnWorld) settle() {
	w.t.Helper()
	for _, d := range w.clusters {
		d.up.l.settle(w.t, d.up.s, d.up.r, w.moves)
	}
	through := w.hub()
	for _, d := range w.clusters {
		d.down.l.settle(w.t, d.down.s, d.down.r, w.moves)
	}
	directly := w.translate(func(d *drawnCluster) *snapshot.Cluster { return d.read(d.there, snapshot.Synced) })
	require.Empty(w.t, through.Frozen)
	wanted := w.documents(directly)
	for _, d := range w.clusters {
		assert.Equal(w.t, wanted[d.is.Name], d.down.to.objects, "in cluster %s stands what a direct connection would have written", d.is.Name)
		assert.Zero(w.t, d.up.r.Mismatches()+d.down.r.Mismatches())
	}
	assert.Equal(w.t, plain(w.t, directly.ByCluster()), plain(w.t, through.ByCluster()), "in the management cluster, too")
	assert.Equal(w.t, plain(w.t, directly.Statuses.Slice()), plain(w.t, through.Statuses.Slice()))
	assert.Equal(w.t, plain(w.t, directly.Issues), plain(w.t, through.Issues))
}

func plain(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(raw)
}

// TestDrawnWorlds: of worlds and sequences of edits that are drawn, with streams that end at any frame and both sides starting again, what
// stands in each cluster in the end is what direct connections lead to, object by object, and so is what users are told.
func TestDrawnWorlds(t *testing.T) {
	t.Parallel()
	seed := waittest.Seed(t)
	const worlds = 200
	var written, removed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d objects were written in the end, and %d removed before", written.Load(), removed.Load())
		if !t.Failed() {
			assert.Greater(t, written.Load(), int64(worlds), "something is written in most worlds")
			assert.Greater(t, removed.Load(), int64(worlds/4), "and removed again, as of edits")
		}
	})
	for n := range uint64(worlds) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(seed, n))
			w := drawWorld(t, chance, rand.New(rand.NewPCG(seed, n+worlds)))
			for range 3 {
				for range 25 {
					switch chance.IntN(8) {
					case 0, 1, 2:
						w.clusters[chance.IntN(len(w.clusters))].edit(chance)
					case 3, 4:
						w.fault(chance)
					case 5:
						if chance.IntN(5) == 0 {
							w.restart(chance)
						}
					}
					w.steps(chance.IntN(200))
				}
				w.hub()
			}
			w.settle()

			// Nobody edits any more: whatever ends, nothing is deleted.
			before := w.removed()
			removed.Add(int64(before))
			for _, d := range w.clusters {
				for _, objects := range d.down.to.objects {
					written.Add(int64(len(objects)))
				}
			}
			for range 4 {
				for range 3 {
					w.fault(chance)
					w.steps(chance.IntN(200))
				}
				w.hub()
			}
			w.settle()
			assert.Equal(t, before, w.removed())
		})
	}
}
