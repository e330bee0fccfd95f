package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func withPlane(id string) func(*apply.Options) { return func(o *apply.Options) { o.PlaneID = id } }

// labelled are the labels of an object that a management plane in the world's namespace
// wrote for a cluster.
func (w *world) labelled(cluster, plane string) map[string]string {
	set := map[string]string{snapshot.NetworkingOwnerLabel: w.namespace, snapshot.ClusterLabel: cluster}
	if plane != "" {
		set[snapshot.PlaneLabel] = plane
	}
	return set
}

// meets reports whether a sink says that a management plane writes to a cluster.
func (r *running) meets(cluster, plane, namespace string) bool {
	return slices.ContainsFunc(r.Sink.Failures(), func(f snapshot.Failure) bool {
		return f.Code == snapshot.AnotherPlane && f.Ref.Name == cluster &&
			strings.Contains(f.Reason.String(), "the management plane "+plane+" (in a namespace "+namespace+")")
	})
}

// TestTwoManagementPlanes of two clusters have the same namespace and call one cluster by
// the same name, or by different ones. Neither changes what the other wrote.
func TestTwoManagementPlanes(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{"same name": one, "another name": "cluster-9"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Only a few management planes are named, so no other test writes there.
			config, err := sandboxtest.APIServers(t, 1)[0].Config()
			require.NoError(t, err)
			w := worldOn(t, config)
			w.install(istioKinds...)
			sinkOf := func(cluster, id string, objects ...*snapshot.Object) (*running, func(...*snapshot.Object)) {
				sink, _ := w.run(withPlane(id))
				sink.Set(cluster, w.config)
				sink.Identify(map[string]types.UID{cluster: "uid"})
				sink.apply(output([]string{cluster}, objects...))
				return sink, func(objects ...*snapshot.Object) { sink.apply(output([]string{cluster}, objects...)) }
			}
			version := func(name string) string { return w.get(snapshot.VirtualService, name).GetResourceVersion() }
			object := func(cluster, name, host string) *snapshot.Object {
				return w.object(snapshot.VirtualService, cluster, name, hosts(host))
			}
			first, firstApplies := sinkOf(one, "p1", object(one, "shared", "first"), object(one, "left", "first"))
			shared, left := version("shared"), version("left")
			assert.Equal(t, "p1", w.get(snapshot.VirtualService, "shared").GetLabels()[snapshot.PlaneLabel])
			assert.False(t, first.meets(one, "p2", w.namespace))

			other, otherApplies := sinkOf(second, "p2", object(second, "shared", "second"), object(second, "right", "second"))
			assert.Equal(t, shared, version("shared"))
			assert.Equal(t, left, version("left"))
			failures := other.Failures()
			require.Len(t, failures, 1)
			assert.Equal(t, snapshot.ForeignObject, failures[0].Code)
			assert.Contains(t, failures[0].What, "the management plane p1")
			assert.True(t, other.meets(second, "p1", w.namespace))
			w.eventually("the first one sees the second", func() bool { return first.meets(one, "p2", w.namespace) })

			// Both go on, and collect what is theirs.
			right := version("right")
			firstApplies(object(one, "shared", "changed"))
			assert.False(t, w.exists(snapshot.VirtualService, "left"))
			assert.NotEqual(t, shared, version("shared"))
			assert.Equal(t, right, version("right"))
			shared = version("shared")
			otherApplies()
			assert.False(t, w.exists(snapshot.VirtualService, "right"))
			assert.Equal(t, shared, version("shared"))
			w.eventually("nobody else is there", func() bool { return !first.meets(one, "p2", w.namespace) })
		})
	}
}

// TestObjectsOfVersionsWithoutIdentity are kept, and get the identity.
func TestObjectsOfVersionsWithoutIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept, gone := w.object(snapshot.VirtualService, one, "kept", hosts("kept")), w.object(snapshot.VirtualService, one, "gone", hosts("gone"))
	old, end := w.run()
	old.Set(one, w.config)
	old.apply(output([]string{one}, kept, gone))
	before := w.get(snapshot.VirtualService, "kept")
	assert.NotContains(t, before.GetLabels(), snapshot.PlaneLabel)
	end()
	w.user(snapshot.VirtualService, "of-another-cluster", w.labelled("cluster-9", ""), hosts("x"))

	sink, _ := w.run(withPlane("p1"))
	sink.Set(one, w.config)
	sink.Identify(map[string]types.UID{one: "uid-1"})
	sink.apply(output([]string{one}, kept))
	after := w.get(snapshot.VirtualService, "kept")
	assert.Equal(t, before.GetUID(), after.GetUID())
	assert.Equal(t, before.GetGeneration(), after.GetGeneration(), "only the label is new")
	assert.Equal(t, "p1", after.GetLabels()[snapshot.PlaneLabel])
	assert.False(t, w.exists(snapshot.VirtualService, "gone"), "what is no longer wanted is collected")
	assert.True(t, w.exists(snapshot.VirtualService, "of-another-cluster"), "it may be that of another management plane")
	sink.total()
	sink.apply(output([]string{one}, w.object(snapshot.VirtualService, one, "kept", hosts("kept"))))
	assert.False(t, sink.total().Changed())
}

// TestObjectsOfAnotherClusterAreCollected where it is known that they are in the wrong one.
func TestObjectsOfAnotherClusterAreCollected(t *testing.T) {
	t.Parallel()
	const renamed, unknown, same = "cluster-7", "cluster-8", "cluster-9"
	w := newWorld(t)
	stray := func(name, cluster, plane string) {
		t.Helper()
		w.user(snapshot.VirtualService, name, w.labelled(cluster, plane), hosts("x"))
	}
	stray("of-no-cluster", renamed, "p1")
	stray("of-a-known-one", "cluster-2", "p1")
	stray("of-an-unknown-one", unknown, "p1")
	stray("of-the-same", same, "p1")
	stray("of-nobody", renamed, "")
	stray("of-another-plane", renamed, "p2")
	stray("wanted", unknown, "p1")

	sink, _ := w.run(withPlane("p1"))
	sink.Set(one, w.config)
	wanted := w.object(snapshot.VirtualService, one, "wanted", hosts("wanted"))
	sink.apply(output([]string{one, "cluster-2", unknown, same}, wanted))
	for _, name := range []string{"of-no-cluster", "of-a-known-one", "of-an-unknown-one", "of-the-same", "of-nobody", "of-another-plane"} {
		assert.True(t, w.exists(snapshot.VirtualService, name), "nothing is known yet: %s", name)
	}
	known := map[string]types.UID{one: "uid-1", "cluster-2": "uid-2", unknown: "", same: "uid-1"}
	sink.Identify(known)
	sink.settle()
	for _, name := range []string{"of-no-cluster", "of-a-known-one"} {
		w.eventually(name+" is deleted", func() bool { return !w.exists(snapshot.VirtualService, name) })
	}
	for _, name := range []string{"of-an-unknown-one", "of-the-same", "of-nobody", "of-another-plane"} {
		assert.True(t, w.exists(snapshot.VirtualService, name), name)
	}
	failures := sink.Failures()
	require.Len(t, failures, 1, "what is wanted is not taken from a cluster that is not known to be another one")
	assert.Equal(t, wanted.Ref, failures[0].Ref)
	assert.Contains(t, failures[0].What, "was written for cluster "+unknown)

	known = map[string]types.UID{one: "uid-1", "cluster-2": "uid-2", unknown: "uid-8", same: "uid-1"}
	sink.Identify(known)
	w.eventually("what is wanted is written", func() bool { return len(sink.Failures()) == 0 })
	assert.Equal(t, one, w.get(snapshot.VirtualService, "wanted").GetLabels()[snapshot.ClusterLabel])
	w.eventually("the last one is deleted", func() bool { return !w.exists(snapshot.VirtualService, "of-an-unknown-one") })
	require.NoError(t, w.of(snapshot.VirtualService).Delete(t.Context(), "of-another-plane", metav1.DeleteOptions{}))
}
