package wire

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// BenchmarkLiveWire measures the time from an edit to the first response that it
// changes: for an edit that needs nothing new, for one whose route needs subsets in both
// clusters that proxies do not know yet, and for one that also creates the
// VirtualDestination that its route leads to. Istio collects changes for 100 ms.
func BenchmarkLiveWire(b *testing.B) {
	e := newEnvironment(b)
	from := e.pod(b, "cluster-1", "productpage-v1")
	const edits = 30
	for b.Loop() {
		l := e.stream(b, from, app.Call{URL: "http://details:9080", Rate: 400, Parallel: 20})
		var plain []time.Duration
		for i := range edits {
			status := 400 + i
			plain = append(plain, l.changes(b, func(name string) bool { return strings.HasPrefix(name, fmt.Sprint(status)) }, func() {
				e.apply(b, fmt.Sprintf(`apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: edited, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}
  policy: {faultInjection: {abort: {httpStatus: %d}}}
`, status))
			}))
		}
		l.stop()
		report(b, "edit", plain)

		l = e.stream(b, from, app.Call{URL: reviews, Rate: 400, Parallel: 20})
		var subsets, virtual []time.Duration
		for range edits / 3 {
			e.remove(b, shift(75, 15, 10))
			e.forgotten(b)
			subsets = append(subsets, l.changes(b, func(name string) bool { return name == remoteV3 }, func() { e.apply(b, shift(75, 15, 10)) }))
		}
		for range edits / 3 {
			e.remove(b, shift(75, 15, 10))
			e.remove(b, farReviews)
			e.forgotten(b)
			virtual = append(virtual, l.changes(b, func(name string) bool { return name == remoteV3 }, func() { e.apply(b, farReviews+"---\n"+farShift(75, 15, 10)) }))
		}
		l.stop()
		report(b, "new-subsets", subsets)
		report(b, "new-virtualdestination", virtual)
	}
}

// forgotten waits until no cluster has a DestinationRule for reviews.
func (e *environment) forgotten(b *testing.B) {
	b.Helper()
	for name, c := range e.clusters {
		client, err := c.Client()
		require.NoError(b, err)
		waittest.NoError(b, "DestinationRules go", func() error {
			rules, err := client.List(b.Context(), kube.Networking("destinationrules"), "")
			for _, r := range rules {
				if strings.HasPrefix(r.GetName(), "reviews") {
					return fmt.Errorf("%s still has %s", name, r.GetName())
				}
			}
			return err
		})
	}
}

// changes returns the time from an edit to the first outcome that it causes.
func (l *load) changes(t testing.TB, caused func(name string) bool, edit func()) time.Duration {
	t.Helper()
	var first atomic.Int64
	l.watch(func(name string) {
		if caused(name) {
			first.CompareAndSwap(0, time.Now().UnixNano())
		}
	})
	begin := time.Now()
	edit()
	waittest.Until(t, "a response changes", func() bool { return first.Load() != 0 })
	return time.Unix(0, first.Load()).Sub(begin)
}

func report(b *testing.B, what string, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), what+"-p50-ms")
	b.ReportMetric(float64(times[len(times)-1].Milliseconds()), what+"-max-ms")
}
