package apply_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func destinationSpec(service string) map[string]any {
	return map[string]any{"kubeService": map[string]any{
		"ref": map[string]any{"name": service, "namespace": "bookinfo", "clusterName": one}}}
}

func (w *world) status(k snapshot.Kind, name string, value any) *snapshot.Status {
	return &snapshot.Status{Ref: snapshot.Ref{Kind: k, Namespace: w.namespace, Name: name}, Value: value}
}

// discovered is a Destination found in a cluster.
func (w *world) discovered(cluster, name string) *snapshot.Object {
	o := w.object(snapshot.Destination, "", name, destinationSpec(name))
	o.Content.Labels[snapshot.DiscoveryClusterLabel] = cluster
	return o
}

func TestStatusAndSpecDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set("", w.config)
	out := output([]string{one}, w.discovered(one, "reviews"))
	out.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.Destination, "reviews", map[string]any{"localFqdn": "reviews.svc", "observedGeneration": 1})})
	sink.apply(out)
	stored := w.get(snapshot.Destination, "reviews")
	assert.Equal(t, "reviews.svc", nested(t, stored, "status", "localFqdn"))
	assert.Contains(t, stored.GetLabels(), snapshot.ClusterLabel)
	sum := sink.total()
	assert.Equal(t, 1, sum.Created)
	assert.Equal(t, 1, sum.Statuses)

	// A new spec leaves the status.
	changed := *out
	object := w.discovered(one, "reviews")
	object.Content.Spec = destinationSpec("reviews-v2")
	changed.Parts = output(nil, object).Parts
	sink.apply(&changed)
	stored = w.get(snapshot.Destination, "reviews")
	assert.Equal(t, "reviews-v2", nested(t, stored, "spec", "kubeService", "ref", "name"))
	assert.Equal(t, "reviews.svc", nested(t, stored, "status", "localFqdn"))

	// A new status leaves the spec, and what it no longer says goes.
	again := changed
	again.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.Destination, "reviews", map[string]any{"observedGeneration": 2})})
	sink.apply(&again)
	stored = w.get(snapshot.Destination, "reviews")
	assert.Equal(t, "reviews-v2", nested(t, stored, "spec", "kubeService", "ref", "name"))
	assert.Equal(t, map[string]any{"observedGeneration": int64(2)}, stored.Object["status"])

	// The same status, made anew, is not written.
	same := again
	same.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.Destination, "reviews", map[string]any{"observedGeneration": 2})})
	sink.apply(&same)
	assert.Equal(t, stored.GetResourceVersion(), w.get(snapshot.Destination, "reviews").GetResourceVersion())

	// A status that somebody changes is repaired.
	_, err := w.of(snapshot.Destination).Patch(t.Context(), "reviews", types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`), metav1.PatchOptions{FieldManager: "x"}, "status")
	require.NoError(t, err)
	w.eventually("the status is repaired", func() bool {
		return nested(t, w.get(snapshot.Destination, "reviews"), "status", "observedGeneration") == int64(2)
	})
}

// TestStatusesComeAfterTheObjectsOfTheirChange: the versions of one API server,
// which is both the management plane and a cluster here, tell what came first.
func TestStatusesComeAfterTheObjectsOfTheirChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run(func(o *apply.Options) { o.StatusPatience = waittest.Limit() })
	sink.Set("", w.config)
	sink.Set(one, w.config)
	version := func(k snapshot.Kind, name string) int {
		n, err := strconv.Atoi(w.get(k, name).GetResourceVersion())
		require.NoError(t, err)
		return n
	}
	destination := w.discovered(one, "reviews")
	for n := range 5 {
		out := output([]string{one}, destination, w.object(snapshot.ServiceEntry, one, "reviews", hosts(fmt.Sprintf("reviews-%d.example", n))))
		out.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.Destination, "reviews", map[string]any{"observedGeneration": n + 1})})
		sink.apply(out)
		if n > 0 { // at first, both connections are only being made
			assert.Greater(t, version(snapshot.Destination, "reviews"), version(snapshot.ServiceEntry, "reviews"))
		}
	}
}

func TestStatusOfAUsersObjectWaitsForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set("", w.config)
	out := output([]string{one})
	out.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.TrafficPolicy, "shift", map[string]any{"state": "ACCEPTED"})})
	sink.apply(out)
	assert.Empty(t, sink.Failures())

	w.user(snapshot.TrafficPolicy, "shift", nil, map[string]any{"policy": map[string]any{"requestTimeout": "1s"}})
	w.eventually("the status is written", func() bool {
		return nested(t, w.get(snapshot.TrafficPolicy, "shift"), "status", "state") == "ACCEPTED"
	})
	assert.Equal(t, "1s", nested(t, w.get(snapshot.TrafficPolicy, "shift"), "spec", "policy", "requestTimeout"))
	sink.apply(output([]string{one}))
	assert.True(t, w.exists(snapshot.TrafficPolicy, "shift"), "users' objects are never collected")
	require.NoError(t, w.of(snapshot.TrafficPolicy).Delete(t.Context(), "shift", metav1.DeleteOptions{}))
}

func TestDiscoveredObjectsOutliveSilenceNotDeregistration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set("", w.config)
	sink.apply(output([]string{one, "cluster-2"},
		w.discovered(one, "a"), w.discovered(one, "b"), w.discovered("cluster-2", "c"), w.discovered("cluster-2", "d")))

	// cluster-2 is frozen and, for whatever reason, the Output has not all of it.
	frozen := output([]string{one, "cluster-2"}, w.discovered(one, "a"), w.discovered("cluster-2", "c"))
	frozen.Frozen = []string{"cluster-2"}
	sink.apply(frozen)
	assert.False(t, w.exists(snapshot.Destination, "b"), "gone from a cluster that can be read")
	assert.True(t, w.exists(snapshot.Destination, "d"), "kept: its cluster is silent")

	sink.apply(output([]string{one}, w.discovered(one, "a")))
	assert.True(t, w.exists(snapshot.Destination, "a"))
	assert.False(t, w.exists(snapshot.Destination, "c"))
	assert.False(t, w.exists(snapshot.Destination, "d"))
}
