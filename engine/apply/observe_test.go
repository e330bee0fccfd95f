package apply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// weights is the spec of a route, as of a VirtualService.
func weights(values ...int) map[string]any {
	var route []any
	for i, value := range values {
		route = append(route, map[string]any{"destination": map[string]any{"host": "reviews", "subset": string(rune('a' + i))}, "weight": value})
	}
	return map[string]any{"hosts": []any{"reviews"}, "http": []any{map[string]any{"route": route}}}
}

func TestAnObserverSeesWhatIsInForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, stop := w.run()
	sink.Set(one, w.config)
	out := output([]string{one},
		w.object(snapshot.VirtualService, one, "reviews", weights(75, 15, 10)),
		w.object(snapshot.VirtualService, one, "ratings", weights(100)),
		w.object(snapshot.ServiceEntry, one, "old", hosts("old.global")),
		w.object(snapshot.DestinationRule, one, "reviews", hosts("reviews")))
	sink.apply(out)
	stop()

	observer, clusters := apply.NewObserver(snapshot.Plane{Namespace: w.namespace}), newFleet(t, snapshot.Plane{Namespace: w.namespace})
	t.Cleanup(clusters.stop)
	observer.Set(one, clusters.link(one, w.config))
	var observed *snapshot.Observed
	w.eventually("the cluster is listed", func() bool {
		observed = observer.Observe(t.Context(), out)
		return len(observed.Unread) == 0
	})
	require.Empty(t, observed.Drifts)
	require.Empty(t, observed.Unread)

	// Nothing serves, and somebody changes what was written.
	patch := func(kind snapshot.Kind, name, body string) {
		t.Helper()
		_, err := w.of(kind).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		require.NoError(t, err)
	}
	patch(snapshot.VirtualService, "reviews", `{"spec":{"http":[{"route":[
		{"destination":{"host":"reviews","subset":"a"},"weight":75},{"destination":{"host":"reviews","subset":"b"},"weight":0},{"destination":{"host":"reviews","subset":"c"},"weight":25}]}]}}`)
	patch(snapshot.DestinationRule, "reviews", `{"metadata":{"labels":{"team":"blue"}},"spec":{"nested":{"theirs":true}}}`)
	require.NoError(t, w.of(snapshot.VirtualService).Delete(t.Context(), "ratings", metav1.DeleteOptions{}))
	wanted := output([]string{one}, objectsBut(out, "old")...)
	w.eventually("all of it is seen", func() bool {
		observed = observer.Observe(t.Context(), wanted)
		return len(observed.Drifts) == 3
	})
	// A DestinationRule with fields of others is as it should be.
	for i := range observed.Drifts {
		observed.Drifts[i].Ref.Namespace = ""
	}
	drift := func(kind snapshot.Kind, name string) snapshot.Drift {
		for _, d := range observed.Drifts {
			if d.Ref.Kind == kind && d.Ref.Name == name {
				return d
			}
		}
		return snapshot.Drift{}
	}
	assert.Equal(t, snapshot.DriftLeftover, drift(snapshot.ServiceEntry, "old").State)
	assert.Equal(t, snapshot.DriftMissing, drift(snapshot.VirtualService, "ratings").State)
	changed := drift(snapshot.VirtualService, "reviews")
	assert.Equal(t, snapshot.DriftChanged, changed.State)
	assert.Equal(t, []snapshot.DriftField{{Path: "spec.http[0].route[].weight", InForce: "75/0/25", Wanted: "75/15/10"}}, changed.Fields)
	assert.Equal(t, "kubectl-edit", changed.By)
	assert.False(t, changed.At.IsZero())

	// A sink puts it right, and the observer sees that.
	again, _ := w.run()
	again.Set(one, w.config)
	again.apply(wanted)
	w.eventually("nothing differs", func() bool { return len(observer.Observe(t.Context(), wanted).Drifts) == 0 })
}

// objectsBut are the objects of an Output without one.
func objectsBut(out *snapshot.Output, name string) (rest []*snapshot.Object) {
	for o := range out.Objects {
		if o.Ref.Name != name {
			rest = append(rest, o)
		}
	}
	return rest
}

func TestAnObserverSaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := output([]string{"cluster-1", "cluster-2", "cluster-3"}, w.object(snapshot.VirtualService, one, "reviews", hosts("reviews")))
	ctx := t.Context()
	observer, clusters := apply.NewObserver(snapshot.Plane{Namespace: w.namespace}), newFleet(t, snapshot.Plane{Namespace: w.namespace})
	t.Cleanup(clusters.stop)
	observer.Set(one, clusters.link(one, w.config))
	observer.Set("cluster-2", clusters.link("cluster-2", &rest.Config{Host: "https://127.0.0.1:1"}))
	var observed *snapshot.Observed
	w.eventually("both are known", func() bool {
		observed = observer.Observe(ctx, out)
		return observed.Unread[one] == "" && !strings.Contains(observed.Unread["cluster-2"], "not been listed")
	})
	require.Len(t, observed.Drifts, 1, "cluster-1 is read all the same")
	assert.Equal(t, snapshot.DriftMissing, observed.Drifts[0].State)
	assert.Contains(t, observed.Unread["cluster-2"], "refuses connections")
	assert.Contains(t, observed.Unread["cluster-3"], "cannot be reached with what is stored of it")
	observer.Remove("cluster-2")
	assert.NotContains(t, observer.Observe(ctx, out).Unread["cluster-2"], "refused")
}
