package wire

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// outliers breaks one pod of a service. Callers of its own cluster exclude it. Those
// of another cluster, who see a gateway in front of it, must not exclude the gateway
// with the pods that work.
func outliers(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	e.remove(t, shift(75, 15, 10))
	t.Cleanup(func() { e.apply(t, shift(75, 15, 10)) })
	e.staysHome(t, from)
	e.during(t, fmt.Sprintf(`apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: outliers, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceMatcher: {labels: {app: reviews}}
  policy: {outlierDetection: {consecutiveErrors: %d, interval: 1s, baseEjectionTime: 5s, maxEjectionPercent: 100}}
`, errorsAllowed))
	own := app.Identity{Cluster: "cluster-1", Namespace: "bookinfo", Workload: "reviews-v2"}
	require.NoError(t, e.plane.Break(t.Context(), own, proxies.Fault{Status: 503}))
	waittest.NoError(t, "the pod that fails is excluded", func() error {
		return e.allAre(t.Context(), from, app.Call{URL: reviews, Count: 20}, localV1)
	})
	require.NoError(t, e.plane.Break(t.Context(), own, proxies.Fault{}))
	waittest.Until(t, "the pod is used again", func() bool {
		all, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: 20})
		require.NoError(t, err)
		return all[localV2] > 0 && len(all.failed()) == 0
	})

	far := app.Identity{Cluster: "cluster-2", Namespace: "bookinfo", Workload: "reviews-v3"}
	require.NoError(t, e.plane.Break(t.Context(), far, proxies.Fault{Status: 503}))
	// Each request has a connection of its own, which the gateway passes to any pod.
	all, err := e.send(t.Context(), from, app.Call{URL: "http://reviews.bookinfo.svc.cluster-2.global:9080", Count: 600, Parallel: 20})
	require.NoError(t, err)
	require.NoError(t, e.plane.Break(t.Context(), far, proxies.Fault{}))
	t.Logf("with one of three pods broken behind a gateway: %v", all)
	failed := all.failed()
	assert.Equal(t, failed.total(), failed["503 from cluster-2 reviews-v3"], "only the pod that fails answers so: %v", all)
	assert.NotZero(t, all["cluster-2 reviews-v1"]+all["cluster-2 reviews-v2"])
}
