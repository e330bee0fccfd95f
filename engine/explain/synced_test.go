package explain_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// syncs answer for the meshes of clusters.
type syncs map[string][]snapshot.SyncedProxy

func (s syncs) Sync(m *snapshot.MeshPlan) ([]snapshot.SyncedProxy, error) {
	if found, known := s[m.Cluster]; known {
		return found, nil
	}
	return nil, errors.New("no context leads there: add one")
}

// TestSynced: which control planes are asked about an object, and what is said of the answers.
func TestSynced(t *testing.T) {
	t.Parallel()
	index := func(dir string) *explain.Index {
		input, _, err := offline.Load(offline.Dir("../../testdata/translate/" + dir + "/in"))
		require.NoError(t, err)
		return explain.New(engine.Translate(input))
	}
	bookinfo, osm := index("bookinfo"), index("osm-traffic")
	done, waits := snapshot.SyncedProxy{Namespace: "shop", Pod: "a"}, snapshot.SyncedProxy{Namespace: "shop", Pod: "b", Waits: []string{"listeners", "routes"}}
	rejects := snapshot.SyncedProxy{Namespace: "shop", Pod: "c", Waits: []string{"routes"}, Refused: "no such cluster"}
	for name, c := range map[string]struct {
		index *explain.Index
		kind  snapshot.Kind
		name  string
		syncs syncs
		done  bool
		text  string
	}{
		"all":                  {bookinfo, snapshot.TrafficPolicy, "reviews-shift", syncs{"cluster-1": {done, done}, "cluster-2": {done}}, true, "3 of 3"},
		"one waits":            {bookinfo, snapshot.TrafficPolicy, "reviews-shift", syncs{"cluster-1": {done, waits}, "cluster-2": {done}}, false, "2 of 3; cluster-1/shop/b has not acknowledged listeners, routes"},
		"one rejects":          {bookinfo, snapshot.TrafficPolicy, "reviews-shift", syncs{"cluster-1": {rejects}, "cluster-2": {}}, false, "0 of 1; cluster-1/shop/c rejects routes: no such cluster"},
		"none":                 {bookinfo, snapshot.TrafficPolicy, "reviews-shift", syncs{"cluster-1": {}, "cluster-2": {}}, true, "no proxy is connected where something follows from it"},
		"one not known":        {bookinfo, snapshot.TrafficPolicy, "reviews-shift", syncs{"cluster-1": {done}}, false, "1 of 1; mesh istiod-istio-system-cluster-2 not known: no context leads there: add one"},
		"a destination":        {bookinfo, snapshot.Destination, "reviews.bookinfo.cluster-1", syncs{"cluster-1": {done}, "cluster-2": {done}}, true, "2 of 2"},
		"another kind of mesh": {osm, snapshot.TrafficPolicy, "split", syncs{}, false, "control planes of OSM do not say what proxies have acknowledged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := c.index.Refs(c.kind)[0]
			if c.name != "" {
				found := c.index.Find(c.kind, c.name)
				require.Len(t, found, 1)
				ref = found[0]
			}
			synced := explain.SyncedOf(c.index, ref, c.syncs)
			assert.Equal(t, c.done, synced.Done())
			assert.Contains(t, synced.Text(), c.text)
			answer := c.index.Describe(ref)
			require.True(t, explain.AskSyncs(c.index, answer, c.syncs))
			assert.Equal(t, explain.Section{Title: "In proxies", Text: synced.Text() + "."}, answer.Page().Sections[1])
			data, err := json.Marshal(answer)
			require.NoError(t, err)
			assert.Contains(t, string(data), `"inProxies":{"acknowledged":`)
		})
	}
	assert.False(t, explain.AskSyncs(bookinfo, bookinfo.Describe(bookinfo.Refs(snapshot.Workload)[0]), syncs{}))
	assert.Equal(t, snapshot.UsualDebounce, explain.SlowestDebounce(bookinfo, bookinfo.Refs(snapshot.TrafficPolicy)[0]))
}
