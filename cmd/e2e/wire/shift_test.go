package wire

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
)

const reviews = "http://reviews:9080/reviews/1"

// The outcomes of requests for reviews.
const (
	remoteV3 = "cluster-2 reviews-v3"
	localV1  = "cluster-1 reviews-v1"
	localV2  = "cluster-1 reviews-v2"
)

// shares sends requests through a shift with subsets across clusters.
func shares(t *testing.T, e *environment) {
	t.Helper()
	require.NoError(t, e.shares(t.Context(), e.pod(t, "cluster-1", "productpage-v1")))
}

// shares sends requests through the shift of the demo, and returns an error unless
// they are split as it says.
func (e *environment) shares(ctx context.Context, from proxies.Pod) error {
	return e.divided(ctx, from, map[string]float64{remoteV3: 0.75, localV1: 0.15, localV2: 0.10})
}

// divided sends requests for reviews, and returns an error unless each outcome has its
// share.
func (e *environment) divided(ctx context.Context, from proxies.Pod, shares map[string]float64) error {
	const count = 2000
	all, err := e.send(ctx, from, app.Call{URL: reviews, Count: count, Parallel: 20})
	if err != nil {
		return err
	}
	if failed := all.failed(); len(failed) > 0 || all.total() != count {
		return fmt.Errorf("%d requests: %v", all.total(), all)
	}
	for outcome, share := range shares {
		if e := withinFourSigma(all[outcome], count, share); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", outcome, e))
		}
	}
	return err
}

// shift sends three quarters of the requests to another cluster, and splits the rest
// by subset.
func shift(remote, v1, v2 int) string {
	return fmt.Sprintf(`apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: reviews-shift, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}
  policy:
    trafficShift:
      destinations:
      - {kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-2, subset: {version: v3}}, weight: %d}
      - {kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-1, subset: {version: v1}}, weight: %d}
      - {kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-1, subset: {version: v2}}, weight: %d}
`, remote, v1, v2)
}

// transitions creates, edits and deletes a shift with subsets across clusters under
// load: no request fails.
func transitions(t *testing.T, e *environment) {
	t.Helper()
	e.transitions(t, 34)
}

// transition does so a few times.
func transition(t *testing.T, e *environment) {
	t.Helper()
	e.transitions(t, 3)
}

func (e *environment) transitions(t *testing.T, rounds int) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	l := e.under(t, from, reviews, 400)
	for range rounds {
		require.NoError(t, e.management.Delete(t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift"))
		// Without the shift, requests stay in the cluster.
		e.staysHome(t, from)
		e.apply(t, shift(75, 15, 10))
		l.seen(t, remoteV3)
		e.apply(t, shift(50, 25, 25))
	}
	l.seen(t, remoteV3)
	t.Logf("%d requests in %d transitions", l.clean(t), 3*rounds)
}
