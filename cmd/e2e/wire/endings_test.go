package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/waittest"
)

// membership deletes and creates the VirtualMesh under load: requests for a service
// of the caller's own cluster do not fail, wherever they are shifted to.
func membership(t *testing.T, e *environment) {
	t.Helper()
	ctx := t.Context()
	from := e.pod(t, "cluster-1", "productpage-v1")
	l := e.under(t, from, reviews, 400)
	const rounds = 3
	for range rounds {
		require.NoError(t, e.management.Delete(ctx, kube.Policies("virtualmeshes"), "gloo-mesh", "virtual-mesh"))
		e.staysHome(t, from)
		require.NoError(t, e.management.ApplyYAML(ctx, manifests.VirtualMesh()))
		l.seen(t, remoteV3, func(before, now int) bool { return now > before+3 })
	}
	l.clean(t)
}

// updates counts the configurations that each proxy has received.
func (e *environment) updates(t *testing.T) map[string]int64 {
	t.Helper()
	pods, err := e.plane.Pods(t.Context())
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
	require.NoError(t, demo.Up(ctx, e.options))
	e.connected(t, before)
	// They work again.
	require.NoError(t, e.management.Delete(ctx, kube.Policies("trafficpolicies"), "gloo-mesh", "reviews-shift"))
	e.staysHome(t, e.pod(t, "cluster-1", "productpage-v1"))
	e.apply(t, shift(75, 15, 10))
	l.seen(t, remoteV3, func(before, now int) bool { return now > before+3 })
	assert.Greater(t, l.clean(t), 1000)
}
