package wire

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/waittest"
)

// membership takes away what a shift to another cluster needs, and brings it back,
// under load: requests for a service of the caller's own cluster do not fail, and its
// other targets, in that cluster, share them by their weights.
func membership(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	t.Cleanup(func() {
		e.apply(t, string(manifests.SharedVirtualMesh()))
		e.apply(t, shift(75, 15, 10))
		e.remove(t, farReviews)
		e.without(t, "reviews.global")
	})
	again := func() { e.apply(t, string(manifests.SharedVirtualMesh())) }
	without := func() { e.remove(t, string(manifests.SharedVirtualMesh())) }
	for _, c := range []struct {
		name             string
		set, leave, back func()
	}{
		{"the VirtualMesh", e.accepted(t, shift(75, 15, 10)), without, again},
		{"a federation selector", func() {}, func() { e.apply(t, onlyRatings) }, again},
		{"a VirtualDestination", e.accepted(t, farReviews+"---\n"+farShift(75, 15, 10)), func() { e.remove(t, farReviews) }, func() { e.apply(t, farReviews) }},
		{"the VirtualMesh of a VirtualDestination", func() {}, without, again},
	} {
		c.set()
		l := e.under(t, from, reviews, 400)
		l.seen(t, remoteV3)
		for range 2 {
			c.leave()
			e.staysHome(t, from)
			require.NoError(t, e.divided(t.Context(), from, map[string]float64{localV1: 0.6, localV2: 0.4}), c.name)
			c.back()
			l.seen(t, remoteV3)
		}
		t.Logf("%s goes and comes", c.name)
		l.clean(t)
	}
}

// retargeted edits a shift between a VirtualDestination and the service itself, under load:
// with the last route to a subset goes what the subset needs.
func retargeted(t *testing.T, e *environment) {
	t.Helper()
	t.Cleanup(func() {
		e.apply(t, shift(75, 15, 10))
		e.remove(t, farReviews)
	})
	e.apply(t, farReviews)
	from := e.pod(t, "cluster-1", "productpage-v1")
	l := e.under(t, from, reviews, 400)
	for range 3 {
		e.apply(t, farShift(85, 15, 0))
		waittest.NoError(t, "the VirtualDestination is used", func() error {
			return e.divided(t.Context(), from, map[string]float64{remoteV3: 0.85, localV1: 0.15})
		})
		e.apply(t, shift(75, 15, 10))
		l.seen(t, localV2)
	}
	assert.Greater(t, l.clean(t), 1000)
}

// accepted writes documents with the shift of the demo, and waits until the Destination
// remembers it as accepted.
func (e *environment) accepted(t *testing.T, documents string) func() {
	t.Helper()
	return func() {
		e.apply(t, documents)
		waittest.NoError(t, "the shift is accepted", func() error { return e.remembered(t) })
	}
}

// without waits until no cluster has a ServiceEntry for a host: nothing of it is about
// to change.
func (e *environment) without(t *testing.T, host string) {
	t.Helper()
	for name, c := range e.clusters {
		client, err := c.Client()
		require.NoError(t, err)
		waittest.Until(t, host+" is gone from "+name, func() bool {
			_, err := client.Get(context.WithoutCancel(t.Context()), kube.Networking("serviceentries"), "istio-system", host)
			return apierrors.IsNotFound(err)
		})
	}
}

// farShift is the shift of the demo with a VirtualDestination as its first target.
func farShift(remote, v1, v2 int) string {
	return strings.Replace(shift(remote, v1, v2), "kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-2,", "virtualDestination: {name: reviews, namespace: gloo-mesh,", 1)
}

// remembered returns an error unless the status of reviews has the present version of
// the shift.
func (e *environment) remembered(t *testing.T) error {
	t.Helper()
	policy, err := e.management.Get(t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift")
	require.NoError(t, err)
	reviews, err := e.management.Get(t.Context(), kube.Discovery("destinations"), "gloo-mesh", "reviews-bookinfo-cluster-1")
	require.NoError(t, err)
	applied, _, err := unstructured.NestedSlice(reviews.Object, "status", "appliedTrafficPolicies")
	require.NoError(t, err)
	for _, a := range applied {
		fields, _ := a.(map[string]any)
		ref, _ := fields["ref"].(map[string]any)
		if ref["name"] == policy.GetName() && fields["observedGeneration"] == policy.GetGeneration() {
			return nil
		}
	}
	return fmt.Errorf("generation %d is not in %v", policy.GetGeneration(), applied)
}

// onlyRatings is the VirtualMesh of the demo, but for its federation selectors.
const onlyRatings = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: virtual-mesh, namespace: gloo-mesh}
spec:
  meshes:
  - {name: istiod-istio-system-cluster-1, namespace: gloo-mesh}
  - {name: istiod-istio-system-cluster-2, namespace: gloo-mesh}
  mtlsConfig: {autoRestartPods: true, shared: {rootCertificateAuthority: {generated: {}}}}
  federation:
    selectors:
    - destinationSelectors:
      - kubeServiceMatcher: {labels: {service: ratings}}
  globalAccessPolicy: ENABLED
`

// farReviews is the service of the second cluster under a name of its own.
const farReviews = `apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: VirtualDestination
metadata: {name: reviews, namespace: gloo-mesh}
spec:
  hostname: reviews.global
  port: {number: 9080, protocol: http}
  virtualMesh: {name: virtual-mesh, namespace: gloo-mesh}
  static: {destinations: [{kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-2}}]}
`

// updates counts the configurations that each proxy has received.
func (e *environment) updates(t *testing.T) map[string]int64 {
	t.Helper()
	pods, err := e.pods(t.Context())
	require.NoError(t, err)
	counts := map[string]int64{}
	for _, p := range pods {
		stats, err := e.plane.Stats(t.Context(), p, "cds.update_success")
		require.NoError(t, err)
		counts[p.Pod] = stats["cluster_manager.cds.update_success"]
		require.NotZero(t, counts[p.Pod])
	}
	return counts
}

// connected waits until all proxies have received a configuration again. What changes
// before reaches them as one change, in which Istio does not keep to an order.
func (e *environment) connected(t *testing.T, before map[string]int64) {
	t.Helper()
	waittest.NoError(t, "proxies are connected", func() error {
		for pod, count := range e.updates(t) {
			if count <= before[pod] {
				return fmt.Errorf("pod %s has received %d configurations, as before", pod, count)
			}
		}
		return nil
	})
}

// controlPlanes ends both istiods and serve under load. Proxies keep what they have.
func controlPlanes(t *testing.T, e *environment) {
	t.Helper()
	ctx := t.Context()
	e.drained(t)
	l := e.under(t, e.pod(t, "cluster-1", "productpage-v1"), reviews, 400)
	before := e.updates(t)
	report, err := demo.Status(ctx, e.options)
	require.NoError(t, err)
	for _, c := range e.clusters {
		require.NoError(t, c.Kill(ctx, local.Istiod))
	}
	kill(t, report.Serve.PID)
	select {
	case <-time.After(3 * time.Second): // how long they are gone
	case <-ctx.Done():
	}
	e.up(t)
	e.connected(t, before)
	// They work again.
	require.NoError(t, e.management.Delete(ctx, kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift"))
	e.staysHome(t, e.pod(t, "cluster-1", "productpage-v1"))
	e.apply(t, shift(75, 15, 10))
	l.seen(t, remoteV3)
	assert.Greater(t, l.clean(t), 1000)
}
