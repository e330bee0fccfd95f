package apply_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const one = "cluster-1"

func TestObjectsAreCreatedThenLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	vs := w.object(snapshot.VirtualService, one, "reviews", hosts("reviews"))
	se := w.object(snapshot.ServiceEntry, one, "reviews", hosts("reviews.global"))
	se.Content.Annotations = map[string]string{snapshot.ParentsAnnotation: `{"a":1}`}
	out := output([]string{one}, vs, se)

	sink, stop := w.run()
	sink.Set(one, w.config)
	sink.apply(out)
	sum := sink.total()
	assert.Equal(t, 2, sum.Created)
	assert.Zero(t, sum.Configured+sum.Deleted+sum.Failed+sum.Unchanged)
	assert.Empty(t, sink.Failures())
	first := w.get(snapshot.ServiceEntry, "reviews")
	assert.Equal(t, map[string]string{snapshot.NetworkingOwnerLabel: w.namespace, snapshot.ClusterLabel: one}, first.GetLabels())
	assert.Equal(t, `{"a":1}`, first.GetAnnotations()[snapshot.ParentsAnnotation])
	require.Len(t, first.GetManagedFields(), 1)
	assert.Equal(t, snapshot.FieldManager, first.GetManagedFields()[0].Manager)
	assert.Equal(t, metav1.ManagedFieldsOperationApply, first.GetManagedFields()[0].Operation)

	// The same again, made anew: nothing is written.
	again := output([]string{one}, w.object(vs.Ref.Kind, one, "reviews", hosts("reviews")), se)
	sink.apply(again)
	sum = sink.total()
	assert.False(t, sum.Changed(), "%v", sum)
	assert.Equal(t, 1, sum.Unchanged, "only the part that is new was looked at")

	// Nor by a sink that starts afresh.
	stop()
	restarted, _ := w.run()
	restarted.Set(one, w.config)
	restarted.apply(out)
	sum = restarted.total()
	assert.False(t, sum.Changed(), "%v", sum)
	assert.Equal(t, 2, sum.Unchanged)
	assert.Equal(t, first.GetResourceVersion(), w.get(snapshot.ServiceEntry, "reviews").GetResourceVersion())
}

func TestUpdateRemovesWhatIsNoLongerAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	sink.apply(output([]string{one}, w.object(snapshot.VirtualService, one, "a", map[string]any{
		"hosts": []any{"a"}, "nested": map[string]any{"timeout": "1s", "retries": 3}})))
	sink.apply(output([]string{one}, w.object(snapshot.VirtualService, one, "a", map[string]any{
		"hosts": []any{"a", "b"}, "nested": map[string]any{"retries": 4}})))

	spec := w.get(snapshot.VirtualService, "a").Object["spec"].(map[string]any)
	assert.Equal(t, []any{"a", "b"}, spec["hosts"])
	assert.Equal(t, map[string]any{"retries": int64(4)}, spec["nested"])
	sum := sink.total()
	assert.Equal(t, 1, sum.Created)
	assert.Equal(t, 1, sum.Configured)
	assert.Equal(t, "VirtualService cluster-1/"+w.namespace+"/a", sum.Changes[1].Ref.String())
}

func TestFieldsOfOthersSurviveAndDoNotLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	sink.apply(output([]string{one}, w.object(snapshot.DestinationRule, one, "a", hosts("a"))))
	require.Equal(t, "auto", nested(t, w.get(snapshot.DestinationRule, "a"), "spec", "mode"), "the API server adds a default")
	sink.total()

	patched, err := w.of(snapshot.DestinationRule).Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"team":"blue"}},"spec":{"nested":{"theirs":true}}}`),
		metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(t, err)

	// Wait for something later to be seen and done: by then the change was looked at.
	sink.apply(output([]string{one},
		w.object(snapshot.DestinationRule, one, "a", hosts("a")),
		w.object(snapshot.DestinationRule, one, "b", hosts("b"))))
	w.repairOf("b")
	sink.settle()

	now := w.get(snapshot.DestinationRule, "a")
	assert.Equal(t, patched.GetResourceVersion(), now.GetResourceVersion(), "it was not written again")
	assert.Equal(t, true, nested(t, now, "spec", "nested", "theirs"))
	assert.Equal(t, "blue", now.GetLabels()["team"])
	writes := 0
	for _, c := range sink.total().Changes {
		if c.Ref.Name == "a" {
			writes++
		}
	}
	assert.Zero(t, writes, "what is not ours is not looked at")

	// What is ours can still be changed and taken away.
	sink.apply(output([]string{one}, w.object(snapshot.DestinationRule, one, "a", map[string]any{"nested": map[string]any{"ours": "x"}})))
	now = w.get(snapshot.DestinationRule, "a")
	assert.Equal(t, map[string]any{"theirs": true, "ours": "x"}, nested(t, now, "spec", "nested"))
	_, found, err := unstructured.NestedSlice(now.Object, "spec", "hosts")
	require.NoError(t, err)
	assert.False(t, found)
}

func TestWhatTheServerStoresDifferentlyIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, stop := w.run()
	sink.Set(one, w.config)
	out := output([]string{one}, w.object(snapshot.DestinationRule, one, "a", map[string]any{
		"strict": map[string]any{"known": "x", "unknown": "y"}}))
	sink.apply(out)
	stored := w.get(snapshot.DestinationRule, "a")
	require.Equal(t, map[string]any{"known": "x"}, nested(t, stored, "spec", "strict"))

	// A new Output that says the same, and a change that the watch sees.
	sink.apply(output([]string{one}, w.object(snapshot.DestinationRule, one, "a", map[string]any{
		"strict": map[string]any{"known": "x", "unknown": "y"}}), w.object(snapshot.DestinationRule, one, "b", hosts("b"))))
	patched, err := w.of(snapshot.DestinationRule).Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"team":"blue"}}}`), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(t, err)
	w.repairOf("b")
	sink.settle()
	sum := sink.total()
	assert.Zero(t, sum.Configured)
	assert.Equal(t, patched.GetResourceVersion(), w.get(snapshot.DestinationRule, "a").GetResourceVersion())

	// A new sink has to try once to know, and then knows.
	stop()
	restarted, _ := w.run()
	restarted.Set(one, w.config)
	restarted.apply(out)
	known := w.get(snapshot.DestinationRule, "a").GetResourceVersion()
	restarted.total()
	restarted.apply(output([]string{one}, w.object(snapshot.DestinationRule, one, "a", map[string]any{
		"strict": map[string]any{"known": "x", "unknown": "y"}})))
	sum = restarted.total()
	assert.False(t, sum.Changed(), "%v", sum)
	assert.Equal(t, known, w.get(snapshot.DestinationRule, "a").GetResourceVersion())
}

// repairOf deletes an object by hand and waits until it is back.
func (w *world) repairOf(name string) {
	w.t.Helper()
	before := w.get(snapshot.DestinationRule, name).GetUID()
	require.NoError(w.t, w.of(snapshot.DestinationRule).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	w.eventually("the object is made again", func() bool {
		o, err := w.of(snapshot.DestinationRule).Get(w.t.Context(), name, metav1.GetOptions{})
		return err == nil && o.GetUID() != before
	})
}

func TestWhatIsChangedByHandIsRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	sink.apply(output([]string{one}, w.object(snapshot.DestinationRule, one, "a", hosts("a"))))
	w.repairOf("a")
	sink.settle()

	for _, patch := range []string{
		`{"spec":{"hosts":["evil"]}}`,
		`{"metadata":{"labels":{"` + snapshot.ClusterLabel + `":"elsewhere"}}}`,
	} {
		_, err := w.of(snapshot.DestinationRule).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		require.NoError(t, err)
		w.eventually("the change is undone", func() bool {
			o := w.get(snapshot.DestinationRule, "a")
			list, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
			return assert.ObjectsAreEqual([]string{"a"}, list) && o.GetLabels()[snapshot.ClusterLabel] == one
		})
	}
}

func TestForeignObjectIsReportedAndNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.user(snapshot.VirtualService, "reviews", map[string]string{"app": "mine"}, hosts("mine"))
	ours := w.object(snapshot.VirtualService, one, "reviews", hosts("ours"))
	ours.Content.Parents = []snapshot.Ref{{Kind: snapshot.TrafficPolicy, Namespace: "x", Name: "shift"}}

	sink, _ := w.run()
	sink.Set(one, w.config)
	sink.apply(output([]string{one}, ours))
	failures := sink.Failures()
	require.Len(t, failures, 1)
	assert.Equal(t, snapshot.ForeignObject, failures[0].Code)
	assert.Equal(t, ours.Ref, failures[0].Ref)
	assert.Equal(t, ours.Content.Parents, failures[0].Parents)
	assert.Contains(t, failures[0].What, "rename or delete it")
	<-sink.FailuresChanged()
	assert.Equal(t, made.GetResourceVersion(), w.get(snapshot.VirtualService, "reviews").GetResourceVersion())

	// It is not collected either when it is no longer wanted; and when its
	// owner takes it away, ours takes its place.
	sink.apply(output([]string{one}))
	assert.Empty(t, sink.Failures())
	assert.True(t, w.exists(snapshot.VirtualService, "reviews"))
	sink.apply(output([]string{one}, ours))
	require.Len(t, sink.Failures(), 1)
	require.NoError(t, w.of(snapshot.VirtualService).Delete(t.Context(), "reviews", metav1.DeleteOptions{}))
	w.eventually("ours is written", func() bool { return len(sink.Failures()) == 0 })
	assert.Equal(t, []any{"ours"}, nested(t, w.get(snapshot.VirtualService, "reviews"), "spec", "hosts"))
}

func TestGarbageIsCollectedAndOnlyOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours := func(cluster, owner string) map[string]string {
		return map[string]string{snapshot.NetworkingOwnerLabel: owner, snapshot.ClusterLabel: cluster}
	}
	w.user(snapshot.VirtualService, "left-over", ours(one, w.namespace), hosts("x"))
	w.user(snapshot.VirtualService, "other-plane", ours(one, "someone"), hosts("x"))
	w.user(snapshot.VirtualService, "other-cluster", ours("cluster-9", w.namespace), hosts("x"))
	w.user(snapshot.VirtualService, "no-cluster", map[string]string{snapshot.NetworkingOwnerLabel: w.namespace}, hosts("x"))
	w.user(snapshot.VirtualService, "users", nil, hosts("x"))

	sink, _ := w.run()
	sink.Set(one, w.config)
	sink.Apply(output(nil))
	sink.settle()
	assert.True(t, w.exists(snapshot.VirtualService, "left-over"), "the cluster is not registered: hands off")

	wanted := w.object(snapshot.VirtualService, one, "wanted", hosts("x"))
	sink.apply(output([]string{one}, wanted))
	assert.False(t, w.exists(snapshot.VirtualService, "left-over"))
	for _, name := range []string{"other-plane", "other-cluster", "no-cluster", "users", "wanted"} {
		assert.True(t, w.exists(snapshot.VirtualService, name), name)
	}
	sum := sink.total()
	assert.Equal(t, 1, sum.Deleted)
	assert.Equal(t, 1, sum.Created)

	// The same content in a part made anew, in another part, and in none.
	remade := *wanted
	sink.apply(output([]string{one}, &remade))
	moved := *wanted
	sink.apply(&snapshot.Output{Clusters: []string{one}, Parts: snapshot.ListOf([]*snapshot.Part{{Key: "another", Objects: []*snapshot.Object{&moved}}})})
	assert.True(t, w.exists(snapshot.VirtualService, "wanted"))
	assert.False(t, sink.total().Changed())
	sink.apply(output([]string{one}))
	assert.False(t, w.exists(snapshot.VirtualService, "wanted"))
}

func TestFrozenClusterIsNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	sink.apply(output([]string{one},
		w.object(snapshot.VirtualService, one, "a", hosts("a")), w.object(snapshot.VirtualService, one, "b", hosts("b"))))
	before := w.get(snapshot.VirtualService, "a").GetResourceVersion()

	policy := snapshot.Ref{Kind: snapshot.AccessPolicy, Namespace: w.namespace, Name: "policy"}
	frozen := output([]string{one},
		w.object(snapshot.VirtualService, one, "a", hosts("changed")), w.object(snapshot.VirtualService, one, "c", hosts("c")))
	for o := range frozen.Objects {
		o.Content.Parents = []snapshot.Ref{policy}
	}
	frozen.Frozen = []string{one}
	sink.apply(frozen)
	assert.Equal(t, before, w.get(snapshot.VirtualService, "a").GetResourceVersion())
	assert.True(t, w.exists(snapshot.VirtualService, "b"))
	assert.False(t, w.exists(snapshot.VirtualService, "c"))
	waitingFor := func() []snapshot.Failure {
		return slices.DeleteFunc(sink.Failures(), func(f snapshot.Failure) bool { return f.Code != snapshot.ClusterAwaited })
	}
	if waiting := waitingFor(); assert.Len(t, waiting, 1) {
		assert.Equal(t, one, waiting[0].Ref.Name)
		assert.Contains(t, waiting[0].What, "2 objects there")
		assert.Equal(t, []snapshot.Ref{policy}, waiting[0].Parents)
	}

	thawed := *frozen
	thawed.Frozen = nil
	sink.apply(&thawed)
	assert.Equal(t, []any{"changed"}, nested(t, w.get(snapshot.VirtualService, "a"), "spec", "hosts"))
	assert.False(t, w.exists(snapshot.VirtualService, "b"))
	assert.True(t, w.exists(snapshot.VirtualService, "c"))
	assert.Empty(t, waitingFor())
}

func TestRefusalIsAFailureUntilMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	elsewhere := w.object(snapshot.VirtualService, one, "homeless", hosts("x"))
	elsewhere.Ref.Namespace = w.namespace + "-missing"
	sink.apply(output([]string{one},
		w.object(snapshot.VirtualService, one, "bad", map[string]any{"hosts": []any{7}}),
		w.object(snapshot.VirtualService, one, "good", hosts("x")),
		w.object(snapshot.VirtualService, one, "panicking", panicking{}),
		w.object(snapshot.VirtualService, one, "unspeakable", func() {}),
		elsewhere))
	failures := sink.Failures()
	require.Len(t, failures, 4)
	assert.Equal(t, "bad", failures[0].Ref.Name)
	assert.Contains(t, failures[0].What, "spec.hosts")
	assert.Equal(t, "panicking", failures[1].Ref.Name)
	assert.Equal(t, "cannot be written as JSON: panic: broken spec", failures[1].What)
	assert.Equal(t, "unspeakable", failures[2].Ref.Name)
	assert.Equal(t, "homeless", failures[3].Ref.Name)
	assert.Contains(t, failures[3].What, "-missing")
	assert.True(t, w.exists(snapshot.VirtualService, "good"), "one refused object holds up no other")

	// The namespace appears: a retry finds it. The policy is fixed: at once.
	w.createNamespace(elsewhere.Ref.Namespace)
	sink.apply(output([]string{one},
		w.object(snapshot.VirtualService, one, "bad", hosts("fine")),
		w.object(snapshot.VirtualService, one, "good", hosts("x")),
		elsewhere))
	w.eventually("failures are gone", func() bool { return len(sink.Failures()) == 0 })
	assert.True(t, w.exists(snapshot.VirtualService, "bad"))
}

// panicking is a spec that cannot be written as JSON.
type panicking struct{}

// MarshalJSON implements json.Marshaler.
func (panicking) MarshalJSON() ([]byte, error) { panic("broken spec") }

func nested(t testing.TB, u *unstructured.Unstructured, fields ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
	require.NoError(t, err)
	return value
}
