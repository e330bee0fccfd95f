package apply_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRoutesAreWrittenAfterWhatTheyNeed and before that goes: in two clusters that are
// one API server, so that its versions order all writes.
func TestRoutesAreWrittenAfterWhatTheyNeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const two = "cluster-2"
	route := func(subset string) *snapshot.Object {
		return w.object(snapshot.VirtualService, one, "route", &networking.VirtualService{Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a.global", Subset: subset}}},
		}}})
	}
	rule := func(cluster, name string, subsets ...string) *snapshot.Object {
		spec := &networking.DestinationRule{Host: "a.global"}
		for _, s := range subsets {
			spec.Subsets = append(spec.Subsets, &networking.Subset{Name: s})
		}
		return w.object(snapshot.DestinationRule, cluster, name, spec)
	}
	without := output([]string{one, two}, route("v1"), rule(one, "near", "v1"))
	with := output([]string{one, two}, route("v3"), rule(one, "near", "v1", "v3"), rule(two, "far", "v3"))
	rules, err := w.of(snapshot.DestinationRule).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(rules.Stop)
	start := func() (*running, func()) {
		sink, stop := w.run(func(o *apply.Options) {
			o.Pace = apply.Pace{Debounce: 50 * time.Millisecond, Push: 50 * time.Millisecond}
		})
		sink.Set(one, w.config)
		sink.Set(two, w.config)
		return sink, stop
	}
	version := func(k snapshot.Kind, name string) int { return versionOf(t, w.get(k, name)) }

	sink, stop := start()
	sink.apply(without)
	sink.apply(with)
	assert.Greater(t, version(snapshot.VirtualService, "route"), version(snapshot.DestinationRule, "near"))
	assert.Greater(t, version(snapshot.VirtualService, "route"), version(snapshot.DestinationRule, "far"))
	require.Empty(t, sink.Failures())

	sink.apply(without)
	assert.Greater(t, version(snapshot.DestinationRule, "near"), version(snapshot.VirtualService, "route"))
	assert.Greater(t, deletedAt(t, rules), version(snapshot.VirtualService, "route"))

	// A process that starts afterwards finds what proxies use.
	sink.apply(with)
	stop()
	again, _ := start()
	again.apply(without)
	assert.Greater(t, version(snapshot.DestinationRule, "near"), version(snapshot.VirtualService, "route"))
	assert.Greater(t, deletedAt(t, rules), version(snapshot.VirtualService, "route"))
	assert.Equal(t, 1, again.total().Deleted)

	// A control plane may be configured to collect changes for longer.
	slow := output([]string{one, two}, route("v4"), rule(one, "near", "v1", "v4"))
	slow.Debounces = map[string]snapshot.Debounce{one: {After: time.Second, Most: time.Minute}}
	began := time.Now()
	again.apply(slow)
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
	assert.Greater(t, version(snapshot.VirtualService, "route"), version(snapshot.DestinationRule, "near"))
}

func versionOf(t *testing.T, o *unstructured.Unstructured) int {
	t.Helper()
	version, err := strconv.Atoi(o.GetResourceVersion())
	require.NoError(t, err)
	return version
}

// deletedAt is the version at which the next object was deleted.
func deletedAt(t *testing.T, events watch.Interface) int {
	t.Helper()
	for {
		select {
		case e, open := <-events.ResultChan():
			require.True(t, open, "the watch has ended")
			if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type == watch.Deleted {
				return versionOf(t, o)
			}
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		}
	}
}
