package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// virtualDestination has the services of a name in both clusters behind it. A pod is
// excluded after three errors.
func virtualDestination(name, protocol string, port int) string {
	return fmt.Sprintf(`apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: VirtualDestination
metadata: {name: %[1]s, namespace: gloo-mesh}
spec:
  hostname: %[1]s.global
  port: {number: %[3]d, protocol: %[2]s}
  virtualMesh: {name: virtual-mesh, namespace: gloo-mesh}
  localized:
    destinationSelectors:
    - kubeServiceMatcher: {labels: {app: %[1]s}}
    outlierDetection: {consecutiveErrors: %[4]d, interval: 1s, baseEjectionTime: 2s, maxEjectionPercent: 100}
`, name, protocol, port, errorsAllowed)
}

// errorsAllowed is the number of consecutive errors after which a pod is excluded.
const errorsAllowed = 3

// outage is what happens to all pods of a service in the caller's cluster.
type outage struct {
	name  string
	fault proxies.Fault
	// most is the number of requests that may fail until the other cluster has
	// taken over.
	most int
}

// Requests of a caller in a test of failover.
const (
	failoverRate     = 100 // in a second
	failoverParallel = 5
)

// failoverHTTP fails over reviews, which has two pods in the caller's cluster.
func failoverHTTP(t *testing.T, e *environment) {
	t.Helper()
	// A pod is excluded after some errors, and other requests are on their way to it
	// then. Envoy passes on what changes within a second of an exclusion at its end
	// (update_merge_window), so the second pod is used for that long; a busy machine
	// is slower.
	const most = 2*(errorsAllowed+failoverParallel) + 2*failoverRate
	failover(t, e, "reviews", "http", 9080, []outage{
		{"the application fails", proxies.Fault{Status: 503}, most},
		{"the application is gone", proxies.Fault{Killed: true}, most},
		{"the pods are not ready", proxies.Fault{Unready: true}, 0},
	})
}

// answeredIn returns an error unless all requests are answered in one cluster.
func (e *environment) answeredIn(ctx context.Context, cluster string, from proxies.Pod, url string) error {
	all, err := e.send(ctx, from, app.Call{URL: url, Count: 20})
	for outcome := range all {
		if !strings.HasPrefix(outcome, cluster+" ") {
			return fmt.Errorf("%v, want only %s", all, cluster)
		}
	}
	return err
}

// failover breaks the pods of a service in the caller's cluster: the other cluster
// takes over, and gives back when they are repaired.
func failover(t *testing.T, e *environment, name, protocol string, port int, outages []outage) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	e.during(t, virtualDestination(name, protocol, port))
	url := fmt.Sprintf("%s://%s.global:%d", protocol, name, port)
	only := func(cluster string) func() error {
		return func() error { return e.answeredIn(t.Context(), cluster, from, url) }
	}
	waittest.NoError(t, url+" is answered in the caller's cluster", only("cluster-1"))
	workloads := e.workloads(t, "cluster-1", name)
	// One that is not back yet has no endpoint, and fails what comes next.
	repaired := func() error {
		all, err := e.send(t.Context(), from, app.Call{URL: url, Count: 40})
		for _, w := range workloads {
			if all["cluster-1 "+w.Workload] == 0 {
				return fmt.Errorf("%v, nothing from %s", all, w.Workload)
			}
		}
		return errors.Join(err, only("cluster-1")())
	}
	for _, o := range outages {
		l := e.load(t, from, app.Call{URL: url, Rate: failoverRate, Parallel: failoverParallel})
		begin := time.Now()
		e.breakAll(t, workloads, o.fault)
		waittest.NoError(t, o.name, only("cluster-2"))
		over := time.Since(begin)
		begin = time.Now()
		e.breakAll(t, workloads, proxies.Fault{})
		waittest.NoError(t, "repaired: "+o.name, repaired)
		all := l.stop()
		failed := all.failed()
		t.Logf("%s: %s: over after %s, back %s after the repair; %d requests, failed: %v", url, o.name,
			over.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), all.total(), failed)
		control := l.control.stop().failed()
		assert.LessOrEqual(t, beyond(failed.total(), control.total()), o.most, "%s: %s: %v; of those that no change touches: %v", url, o.name, failed, control)
	}
}

// breakAll gives workloads a fault.
func (e *environment) breakAll(t *testing.T, workloads []app.Identity, fault proxies.Fault) {
	t.Helper()
	for _, w := range workloads {
		require.NoError(t, e.plane.Break(t.Context(), w, fault))
	}
}

// workloads are those of a service that have pods in a cluster.
func (e *environment) workloads(t *testing.T, cluster, service string) []app.Identity {
	t.Helper()
	pods, err := e.pods(t.Context())
	require.NoError(t, err)
	var all []app.Identity
	for _, p := range pods {
		if p.Cluster == cluster && strings.HasPrefix(p.Workload, service+"-") {
			all = append(all, app.Identity{Cluster: cluster, Namespace: p.Namespace, Workload: p.Workload})
		}
	}
	require.NotEmpty(t, all)
	return all
}
