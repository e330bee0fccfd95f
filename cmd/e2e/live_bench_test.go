package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
)

const (
	// liveServices are added to each of the two clusters.
	liveServices = 500
	// liveEdits is how many edits of one TrafficPolicy are measured.
	liveEdits = 200
	// rawWorkers is the parallelism of applies, in each cluster, for the raw rate;
	// more do not raise it on two cores.
	rawWorkers = 8
)

// BenchmarkLive measures the running management plane on real API servers, with
// a real istiod that validates every object: the time until all Istio objects of
// 500 new services in each of two federated clusters exist, and the time of as
// many plain server-side applies; the time from the edit of a policy to the
// changed VirtualService; and resident memory.
func BenchmarkLive(b *testing.B) {
	w := newEnvironment(b, withIstio)
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	w.startServe()
	w.apply("cluster-1", manifests.VirtualMesh())
	w.awaitVirtualMesh()

	for b.Loop() {
		b.ReportMetric(w.converge(), "converge-s")
		rate := w.rawRate()
		b.ReportMetric(rate, "raw-applies/s")
		// On the management cluster: ServiceEntries of both clusters'
		// services, their Destinations, and the statuses of these.
		b.ReportMetric(float64(2*liveServices+2*2*liveServices)/rate, "raw-s")
		p50, p99 := w.editLatency()
		b.ReportMetric(p50.Seconds()*1000, "edit-p50-ms")
		b.ReportMetric(p99.Seconds()*1000, "edit-p99-ms")
		b.ReportMetric(w.megabytes("VmRSS"), "rss-MB")
		// Without the pages of the program's own file, of which kernels map more than is used.
		b.ReportMetric(w.megabytes("RssAnon"), "anonymous-MB")
	}
	b.ReportMetric(0, "ns/op")
}

// withIstio installs Istio and one workload for all services.
func withIstio(ctx context.Context, c *local.Cluster) error {
	if err := c.InstallIstio(ctx, local.IstioOptions{}); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	if err := client.ApplyYAML(ctx, []byte(liveWorkload)); err != nil {
		return err
	}
	return client.WaitInjected(ctx, "load")
}

const liveWorkload = `
apiVersion: v1
kind: Namespace
metadata: {name: load, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: load}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: v1}}
    spec:
      containers: [{name: web, image: registry.example/web:1}]
`

func liveService(i int) string { return fmt.Sprintf("web-%04d", i) }

// converge adds the services and returns the seconds until every cluster has the
// ServiceEntries of all of them.
func (w *environment) converge() float64 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	var group errgroup.Group
	began := time.Now()
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		group.Go(func() error { return w.awaitEntries(ctx, cluster, 2*liveServices) })
		group.Go(func() error {
			return w.eachParallel(liveServices, func(i int) error {
				return w.clients[cluster].Apply(ctx, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Service",
					"metadata": map[string]any{"name": liveService(i), "namespace": "load", "labels": map[string]any{"service": liveService(i)}},
					"spec": map[string]any{
						"selector": map[string]any{"app": "web"},
						"ports":    []any{map[string]any{"name": "http", "port": int64(8080), "targetPort": int64(8080)}},
					},
				}})
			})
		})
	}
	require.NoError(w.t, group.Wait())
	return time.Since(began).Seconds()
}

func (w *environment) eachParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(rawWorkers)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// awaitEntries waits until a cluster has want ServiceEntries of services named
// web-….
func (w *environment) awaitEntries(ctx context.Context, cluster string, want int) error {
	entries := w.dynamic[cluster].Resource(kube.Networking("serviceentries")).Namespace("istio-system")
	watcher, err := entries.Watch(ctx, metav1.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: false})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	seen := map[string]bool{}
	for event := range watcher.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted || !strings.HasPrefix(o.GetName(), "web-") {
			continue
		}
		if seen[o.GetName()] = true; len(seen) == want {
			return nil
		}
	}
	return fmt.Errorf("cluster %s: %d of %d ServiceEntries: %w", cluster, len(seen), want, context.Cause(ctx))
}

// rawRate is how many ServiceEntries per second can be applied to each cluster,
// both at the same time: plain applies of the same size as the translated ones.
func (w *environment) rawRate() float64 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	var group errgroup.Group
	began := time.Now()
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		group.Go(func() error {
			return w.eachParallel(2*liveServices, func(i int) error {
				return w.clients[cluster].Apply(ctx, rawEntry(i))
			})
		})
	}
	require.NoError(w.t, group.Wait())
	return 2 * liveServices / time.Since(began).Seconds()
}

func rawEntry(i int) *unstructured.Unstructured {
	name := fmt.Sprintf("raw-%04d.load.example", i)
	labels := map[string]any{"app": "web", "version": "v1", "security.istio.io/tlsMode": "istio"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
		"metadata": map[string]any{
			"name": name, "namespace": "load",
			"annotations": map[string]any{"example/parents": strings.Repeat("x", 250)},
		},
		"spec": map[string]any{
			"hosts": []any{name}, "addresses": []any{fmt.Sprintf("240.1.%d.%d", i/250, i%250)},
			"location": "MESH_INTERNAL", "resolution": "STATIC", "exportTo": []any{"."},
			"ports":     []any{map[string]any{"name": "http", "number": int64(8080), "protocol": "HTTP"}},
			"endpoints": []any{map[string]any{"address": "192.0.2.1", "labels": labels, "ports": map[string]any{"http": int64(15443)}}},
		},
	}}
}

// editLatency edits a TrafficPolicy liveEdits times, and measures the time from
// the start of the request until a watch has the changed VirtualService: the
// median and the 99th percentile.
func (w *environment) editLatency() (p50, p99 time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	w.apply("cluster-1", []byte(livePolicy))
	w.awaitState("trafficpolicies", "live", "ACCEPTED")
	services, err := w.dynamic["cluster-1"].Resource(kube.Networking("virtualservices")).Namespace("load").Watch(ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	defer services.Stop()
	policies, err := w.dynamic["cluster-1"].Resource(kube.Policies("trafficpolicies")).Namespace(mgmt).Watch(ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	defer policies.Stop()

	var took []time.Duration
	for i := range liveEdits {
		timeout := fmt.Sprintf("%ds", i+2)
		began := time.Now()
		edited, err := w.dynamic["cluster-1"].Resource(kube.Policies("trafficpolicies")).Namespace(mgmt).Patch(ctx, "live",
			types.MergePatchType, fmt.Appendf(nil, `{"spec":{"policy":{"requestTimeout":%q}}}`, timeout), metav1.PatchOptions{})
		require.NoError(w.t, err)
		seen(services, func(o *unstructured.Unstructured) bool {
			return o.GetName() == liveService(0) && strings.Contains(fmt.Sprint(field(o, "spec", "http")), "timeout:"+timeout)
		})
		took = append(took, time.Since(began))
		// The next edit follows when the status of this one was read.
		seen(policies, func(o *unstructured.Unstructured) bool {
			return field(o, "status", "observedGeneration") == edited.GetGeneration()
		})
		require.NoError(w.t, ctx.Err())
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

// seen waits until a watch has a matching object.
func seen(watcher watch.Interface, is func(*unstructured.Unstructured) bool) {
	for event := range watcher.ResultChan() {
		if o, ok := event.Object.(*unstructured.Unstructured); ok && is(o) {
			return
		}
	}
}

const livePolicy = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: live, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: web-0000, namespace: load, clusterName: cluster-1}]
  policy: {requestTimeout: 1s}
`

// megabytes is a size of the management plane's process; see proc_pid_status(5).
func (w *environment) megabytes(name string) float64 {
	w.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.serve.cmd.Process.Pid))
	require.NoError(w.t, err)
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(rest)), "kB")), 64)
			require.NoError(w.t, err)
			return kilobytes / 1024
		}
	}
	w.t.Fatalf("no %s", name)
	return 0
}
