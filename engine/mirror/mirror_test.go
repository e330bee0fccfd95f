package mirror

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestDigestsAreOfValuesNotOfSpelling(t *testing.T) {
	t.Parallel()
	of := func(document string) Digest {
		value, err := Plain(json.RawMessage(document))
		require.NoError(t, err)
		return ObjectDigest(nil, nil, value)
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
	none := ObjectDigest(nil, nil, nil)
	assert.NotEqual(t, none, ObjectDigest(map[string]string{"a": "b"}, nil, nil))
	assert.NotEqual(t, ObjectDigest(map[string]string{"a": "b"}, nil, nil), ObjectDigest(nil, map[string]string{"a": "b"}, nil))
	assert.Equal(t, none, ObjectDigest(map[string]string{snapshot.ClusterLabel: "x", snapshot.NetworkingOwnerLabel: "y"}, nil, nil))
}

func TestOnlyAppliedFieldsCount(t *testing.T) {
	t.Parallel()
	o := &Observed{}
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
	assert.Equal(t, ObjectDigest(map[string]string{"ours": "1"}, nil, map[string]any{
		"hosts": []any{"a", "b"}, "nested": map[string]any{"a": int64(1)}, "set": []any{"x", int64(3)},
		"ports": []any{map[string]any{"name": "http", "number": int64(2)}},
	}), o.spec)
	assert.Equal(t, StatusDigest(map[string]any{"state": "ACCEPTED", "theirs": true}), o.status, "a status says only what is ours")
	assert.True(t, o.Forged)
}

func TestMirrorAgainstOvertakingAnswers(t *testing.T) {
	t.Parallel()
	k := snapshot.VirtualService
	a := ID{Kind: k, Name: "a"}
	m := New(func(int64) {})
	assert.False(t, m.State(k).Complete())
	replaced := func(version uint64) []ID {
		changed, _ := m.replace(k, nil, version)
		return changed
	}
	assert.Empty(t, replaced(5))
	assert.True(t, m.State(k).Complete())

	m.written(a, Object{Version: 9})
	assert.False(t, m.event(a, Object{Version: 9}, false), "the echo of our own write is no news")
	assert.True(t, m.event(a, Object{Version: 10}, true), "deleted")
	m.written(a, Object{Version: 9})
	assert.NotContains(t, m.objects, a, "a late answer does not bring it back")

	m.written(a, Object{Version: 12})
	assert.False(t, m.event(a, Object{Version: 11}, true), "the deletion was of the one before")
	assert.Contains(t, m.objects, a)
	assert.Empty(t, replaced(11), "a list older than our write says nothing of it")
	assert.Equal(t, []ID{a}, replaced(12))
	m.written(a, Object{Version: 20})
	m.forget(k)
	assert.Empty(t, m.objects)
	assert.Equal(t, KindState{Absent: true}, m.State(k))
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

// TestOtherPlanesAreBounded: whoever may create objects can label them with any number of management planes.
func TestOtherPlanesAreBounded(t *testing.T) {
	t.Parallel()
	m := New(func(int64) {})
	of := func(n int) ID {
		return ID{Kind: snapshot.VirtualService, Namespace: "tenant", Name: fmt.Sprintf("forged-%d", n)}
	}
	for n := range 10 * mostPlanes {
		m.event(of(n), Object{Version: 1, Other: snapshot.Plane{Namespace: "gloo-mesh", ID: fmt.Sprintf("p%04d", n)}}, false)
	}
	assert.Len(t, m.Others(), mostPlanes)
	for n := range 10 * mostPlanes {
		m.event(of(n), Object{Version: 2}, true)
	}
	assert.Empty(t, m.Others())
}
