package apply

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	random := rand.New(rand.NewPCG(1, 2))
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

func TestDigestsAreOfValuesNotOfSpelling(t *testing.T) {
	t.Parallel()
	of := func(document string) digest {
		value, err := plain(json.RawMessage(document))
		require.NoError(t, err)
		return objectDigest(nil, nil, value)
	}
	for _, same := range [][2]string{
		{`{"a":1,"b":[1,2]}`, `{ "b" : [1, 2], "a":1 }`},
		{`{"a":1.0}`, `{"a":1}`},
		{`{"a":1e2}`, `{"a":100}`},
		{`{"a":null,"b":true}`, `{"b":true}`},
		{`{"a":"\u003c"}`, `{"a":"<"}`},
		{`null`, `{}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740993}`},
	} {
		assert.Equal(t, of(same[0]), of(same[1]), "%s and %s", same[0], same[1])
	}
	for _, different := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`},
		{`{"a":{}}`, `{}`},
		{`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"a":["b","c"]}`, `{"a":["b,c"]}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`},
		{`{"a":0.5}`, `{"a":0.25}`},
		{`{"a":[]}`, `{"a":{}}`},
	} {
		assert.NotEqual(t, of(different[0]), of(different[1]), "%s and %s", different[0], different[1])
	}
	none := objectDigest(nil, nil, nil)
	assert.NotEqual(t, none, objectDigest(map[string]string{"a": "b"}, nil, nil))
	assert.NotEqual(t, objectDigest(map[string]string{"a": "b"}, nil, nil), objectDigest(nil, map[string]string{"a": "b"}, nil))
	assert.Equal(t, none, objectDigest(map[string]string{snapshot.ClusterLabel: "x", snapshot.NetworkingOwnerLabel: "y"}, nil, nil))
}

func TestOnlyAppliedFieldsCount(t *testing.T) {
	t.Parallel()
	o := &observed{}
	require.NoError(t, json.Unmarshal([]byte(`{
	  "kind": "X", "metadata": {"name": "n", "resourceVersion": "7",
	    "labels": {"ours": "1", "theirs": "2"}, "annotations": {"theirs/x": "3"},
	    "managedFields": [
	      {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:theirs": {}}}},
	      {"manager": "meshctl", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {"f:state": {}}}},
	      {"manager": "meshctl", "operation": "Apply", "fieldsV1": {
	        "f:metadata": {"f:labels": {"f:ours": {}}},
	        "f:spec": {"f:hosts": {}, "f:nested": {"f:a": {}, "f:gone": {}},
	          "f:set": {"v:\"x\"": {}, "v:3": {}},
	          "f:ports": {"k:{\"name\":\"http\"}": {".": {}, "f:name": {}, "f:number": {}}}}}}
	    ]},
	  "spec": {"theirs": 1, "hosts": ["a", "b"], "nested": {"a": 1, "b": 2}, "set": ["x", "y", 3],
	    "ports": [{"name": "grpc", "number": 1}, {"name": "http", "number": 2, "protocol": "HTTP"}]},
	  "status": {"state": "ACCEPTED", "theirs": true}}`), o))
	assert.Equal(t, objectDigest(map[string]string{"ours": "1"}, nil, map[string]any{
		"hosts": []any{"a", "b"}, "nested": map[string]any{"a": int64(1)}, "set": []any{"x", int64(3)},
		"ports": []any{map[string]any{"name": "http", "number": int64(2)}},
	}), o.spec)
	assert.Equal(t, statusDigest(map[string]any{"state": "ACCEPTED", "theirs": true}), o.status, "a status says only what is ours")
	assert.True(t, o.forged)
}

func TestMirrorAgainstOvertakingAnswers(t *testing.T) {
	t.Parallel()
	k := snapshot.VirtualService
	a := id{kind: k, name: "a"}
	m := newMirror([]snapshot.Kind{k}, func(int64) {})
	assert.False(t, m.ready())
	assert.Empty(t, m.replace(k, nil, 5))
	assert.True(t, m.ready())

	m.written(a, live{version: 9})
	assert.False(t, m.event(a, live{version: 9}, false), "the echo of our own write is no news")
	assert.True(t, m.event(a, live{version: 10}, true), "deleted")
	m.written(a, live{version: 9})
	assert.NotContains(t, m.objects, a, "a late answer does not bring it back")

	m.written(a, live{version: 12})
	assert.False(t, m.event(a, live{version: 11}, true), "the deletion was of the one before")
	assert.Contains(t, m.objects, a)
	assert.Empty(t, m.replace(k, nil, 11), "a list older than our write says nothing of it")
	assert.Equal(t, []id{a}, m.replace(k, nil, 12))
	m.written(a, live{version: 20})
	m.forget(k)
	assert.Empty(t, m.objects)
	assert.True(t, m.ready())
	assert.False(t, m.kinds[k].current())
}

func TestQueueGoesPhaseByPhase(t *testing.T) {
	t.Parallel()
	q := newQueue([]snapshot.Kind{snapshot.ServiceEntry, snapshot.VirtualService})
	wanted := func(k snapshot.Kind, name string) *item {
		return &item{id: id{kind: k, name: name}, object: &snapshot.Object{}}
	}
	se, vs, late := wanted(snapshot.ServiceEntry, "a"), wanted(snapshot.VirtualService, "a"), wanted(snapshot.ServiceEntry, "late")
	gone := &item{id: id{kind: snapshot.ServiceEntry, name: "gone"}}
	goneFirst := &item{id: id{kind: snapshot.VirtualService, name: "gone"}}
	for _, i := range []*item{gone, goneFirst, vs, se} {
		q.push(i)
	}
	require.Same(t, se, q.pop())
	assert.Nil(t, q.pop(), "the VirtualService waits for what it refers to")
	assert.True(t, q.done(se))
	require.Same(t, vs, q.pop())
	q.push(late)
	require.Same(t, late, q.pop(), "an earlier phase is never held up by a later one")
	assert.False(t, q.idle())
	q.done(late)
	q.done(vs)
	require.Same(t, goneFirst, q.pop(), "deletions come last, in reverse")
	q.done(goneFirst)

	// A retry in flight bars nobody.
	se.refusal = &refusal{tries: 1}
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
	q := newQueue([]snapshot.Kind{snapshot.Destination, snapshot.TrafficPolicy})
	status := &item{id: id{kind: snapshot.TrafficPolicy, name: "a"}, status: &wantedStatus{}}
	object := &item{id: id{kind: snapshot.TrafficPolicy, name: "b"}, object: &snapshot.Object{}}
	both := &item{id: id{kind: snapshot.Destination, name: "c"}, object: &snapshot.Object{}, status: &wantedStatus{}, statusOnly: true}
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
	i := &item{}
	assert.Zero(t, i.repairWait(now), "the first is immediate")
	i.wrote = now
	i.repaired(now)
	assert.Equal(t, repairFirst, i.repairWait(now))
	for range 40 {
		i.repaired(now)
		i.wrote = now
	}
	assert.Equal(t, repairMost, i.repairWait(now))
	i.counts = true
	assert.Zero(t, i.repairWait(now), "an Output does not wait")
	i.counts = false
	i.repaired(now.Add(time.Hour))
	assert.Equal(t, uint8(1), i.rewrites, "after peace it starts anew")
}

// TestObjectsWithoutDigestsAreDecoded: one object that cannot be compared does
// not make the list of the others fail.
func TestObjectsWithoutDigestsAreDecoded(t *testing.T) {
	t.Parallel()
	var list observedList
	require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"a","managedFields":[{"manager":"meshctl","operation":"Apply","fieldsV1":{"f:spec":7}}]},"spec":{"x":1}},
		{"metadata":{"name":"b","managedFields":[{"manager":"meshctl","operation":"Apply","fieldsV1":{"f:spec":{"f:x":{}}}}]},"spec":{"x":1}}]}`), &list))
	require.Len(t, list.Items, 2)
	require.Error(t, list.Items[0].err)
	assert.Equal(t, "a", list.Items[0].Name)
	assert.Zero(t, list.Items[0].spec)
	require.NoError(t, list.Items[1].err)
	assert.NotZero(t, list.Items[1].spec)
}
