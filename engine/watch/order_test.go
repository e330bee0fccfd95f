package watch

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestArrivalOrderDoesNotMatter sends the objects of every golden case to the
// feeds in a random order, with edits and deletions, and translates now and
// then. The last Output must be that of the folder: neither the order nor what
// the feeds strip from objects changes a byte.
func TestArrivalOrderDoesNotMatter(t *testing.T) {
	shard.Unraced(t)
	t.Parallel()
	cases, err := filepath.Glob("../../testdata/*/*/in")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	seed := int64(waittest.Seed(t))
	for n, dir := range cases {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Parallel()
			in, _, err := offline.Load(offline.Dir(dir))
			require.NoError(t, err)
			want := outputText(t, engine.Translate(in).Output)

			r := rand.New(rand.NewSource(seed + int64(n)))
			events := randomEvents(t, r, in)
			feeds := newFeeds(t, in)
			translator := engine.New(engine.Options{})
			for _, e := range events {
				feeds.send(t, e)
				if r.Intn(len(events)) < 4 {
					translator.Translate(feeds.input(t))
				}
			}
			require.Equal(t, want, outputText(t, translator.Translate(feeds.input(t)).Output))
		})
	}
}

// outputText is everything that an Output says.
func outputText(t *testing.T, out *snapshot.Output) string {
	t.Helper()
	files, err := offline.Files(out)
	require.NoError(t, err)
	statuses, err := snapshot.StatusesYAML(out.Statuses.Slice())
	require.NoError(t, err)
	issues, err := snapshot.YAML(out.Issues)
	require.NoError(t, err)
	return fmt.Sprintf("%s\n%s\n%s\n%v %v %v", files, statuses, issues, out.Frozen, out.Clusters, out.Debounces)
}

// sentEvent is an object that arrives from a cluster, or is deleted there.
type sentEvent struct {
	ref     snapshot.Ref
	object  snapshot.APIObject
	deleted bool
}

// randomEvents are events in a random order that end in the objects of an Input.
// Some objects first have the content of another one of their kind, and some
// that are not in the Input come and go.
func randomEvents(t *testing.T, r *rand.Rand, in *snapshot.Input) []sentEvent {
	t.Helper()
	type list struct {
		kind    snapshot.Kind
		cluster string
	}
	others := map[list][]snapshot.APIObject{}
	for ref, object := range in.Objects {
		if isSelected(in, ref, object) {
			at := list{ref.Kind, ref.Cluster}
			others[at] = append(others[at], object)
		}
	}
	var histories [][]sentEvent // of each object
	for ref, object := range in.Objects {
		if !isSelected(in, ref, object) {
			continue
		}
		same := others[list{ref.Kind, ref.Cluster}]
		other := func(name string) snapshot.APIObject {
			o := same[r.Intn(len(same))].DeepCopyObject().(snapshot.APIObject)
			o.SetNamespace(ref.Namespace)
			o.SetName(name)
			o.SetUID("another") // else it would be the same object, whose enforced generation is kept
			return o
		}
		history := []sentEvent{{ref: ref, object: object.DeepCopyObject().(snapshot.APIObject)}}
		switch r.Intn(4) {
		case 0:
			history = append([]sentEvent{{ref: ref, object: other(ref.Name)}}, history...)
		case 1:
			gone := other("gone-" + ref.Name)
			histories = append(histories, []sentEvent{{ref: ref, object: gone}, {ref: ref, object: gone, deleted: true}})
		}
		histories = append(histories, history)
	}
	var events []sentEvent
	for len(histories) > 0 {
		i := r.Intn(len(histories))
		events = append(events, histories[i][0])
		if histories[i] = histories[i][1:]; len(histories[i]) == 0 {
			histories[i] = histories[len(histories)-1]
			histories = histories[:len(histories)-1]
		}
	}
	return events
}

// isSelected reports whether an API server sends the object: the feeds of the
// kinds of meshes ask for those that others wrote.
func isSelected(in *snapshot.Input, ref snapshot.Ref, object snapshot.APIObject) bool {
	return ref.Cluster == "" || !in.Management.Plane().Generated(object.GetLabels(), ref.Cluster)
}

// feeds are those of all clusters of an Input, without API servers.
type feeds struct {
	like       *snapshot.Input
	management *clusterCache[snapshot.Management]
	clusters   []*clusterCache[snapshot.Cluster]
	// filled are the views of the caches; given is what was returned of them.
	filled []snapshot.Cluster
	// configMaps are what API servers would answer who asks for a ConfigMap.
	configMaps map[snapshot.Ref]snapshot.APIObject
	given      snapshot.Input
	own        snapshot.Management
	// version is that of the last event.
	version int
}

func newFeeds(t *testing.T, in *snapshot.Input) *feeds {
	t.Helper()
	f := &feeds{like: in, configMaps: map[snapshot.Ref]snapshot.APIObject{}, own: snapshot.Management{Namespace: in.Management.Namespace}}
	f.management = managementCache(t, in.Management.Plane(), withoutStatuses)
	for _, c := range in.Clusters {
		p := managedCache(t, in.Management.Plane(), c.Name, func() {})
		f.clusters = append(f.clusters, p)
		f.filled = append(f.filled, snapshot.Cluster{Name: c.Name, Domain: c.Domain, Sync: c.Sync, Reason: c.Reason, WebhooksUnknown: c.WebhooksUnknown})
	}
	f.given.Clusters = make([]*snapshot.Cluster, len(in.Clusters))
	return f
}

func (f *feeds) send(t *testing.T, e sentEvent) {
	t.Helper()
	if e.ref.Kind == snapshot.ConfigMap {
		ref := e.ref
		ref.Name = e.object.GetName()
		f.configMaps[ref] = e.object
		if e.deleted {
			delete(f.configMaps, ref)
		}
		return
	}
	all := f.management.feeds
	for i, c := range f.like.Clusters {
		if c.Name == e.ref.Cluster {
			all = f.clusters[i].feeds
		}
	}
	to := feedsOfKind(all, e.ref.Kind)
	require.Len(t, to, 1, "feeds of %s", e.ref)
	store := wireOf(t, to[0])
	f.version++
	e.object.SetResourceVersion(strconv.Itoa(f.version))
	if sent := store.decoded(t, e.object); e.deleted {
		require.NoError(t, store.Delete(sent))
	} else {
		require.NoError(t, store.Add(sent))
	}
}

// answer gives the feeds of ConfigMaps, which follow from the other lists, what they ask for.
func (f *feeds) answer(t *testing.T, p *clusterCache[snapshot.Cluster], view *snapshot.Cluster) {
	t.Helper()
	follows := *view
	p.copyTo(&follows)
	for ref, feed := range p.configMaps.feeds {
		var items []any
		if o := f.configMaps[ref]; o != nil {
			items = append(items, o.DeepCopyObject())
		}
		require.NoError(t, feed.Replace(items, ""))
	}
}

// input shares what did not change with the Input before.
func (f *feeds) input(t *testing.T) *snapshot.Input {
	t.Helper()
	next := *f.like
	next.Management = f.given.Management
	if f.management.copyTo(&f.own) || next.Management == nil {
		own := f.own
		next.Management = &own
	}
	next.Clusters = make([]*snapshot.Cluster, len(f.clusters))
	for i, p := range f.clusters {
		f.answer(t, p, &f.filled[i])
		next.Clusters[i] = f.given.Clusters[i]
		if p.copyTo(&f.filled[i]) || next.Clusters[i] == nil {
			own := f.filled[i]
			next.Clusters[i] = &own
		}
	}
	f.given = next
	return &next
}
