package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kind"
	"github.com/meshctl/meshctl/demo/kube"
)

const planeNamespace = "gloo-mesh"

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// leader is the pod that holds the Lease of serve.
func (d *running) leader(t *testing.T) string {
	t.Helper()
	all, err := d.client(t, "cluster-1").List(t.Context(), leases, planeNamespace)
	require.NoError(t, err)
	for _, lease := range all {
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		// The name of the pod, and what distinguishes its processes.
		if name, _, _ := strings.Cut(holder, "_"); strings.HasPrefix(name, "meshctl-") && !strings.HasPrefix(name, "meshctl-agent") {
			return name
		}
	}
	return ""
}

// timeout sets the timeout of requests for details and ratings, and waits until Istio has it in both clusters.
func (d *running) timeout(t *testing.T, seconds int) {
	t.Helper()
	require.NoError(t, d.client(t, "cluster-1").ApplyYAML(t.Context(), fmt.Appendf(nil, `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: timeout, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}
  - kubeServiceMatcher: {labels: {app: ratings}, namespaces: [bookinfo]}
  policy: {requestTimeout: %ds}
`, seconds)))
	for cluster, name := range map[string]string{"cluster-1": "details", "cluster-2": "ratings"} {
		client := d.client(t, cluster)
		until(t, "the timeout of "+name+" in "+cluster, func(ctx context.Context) error {
			service, err := client.Get(ctx, kube.Networking("virtualservices"), "bookinfo", name)
			if err != nil {
				return err
			}
			if text := fmt.Sprint(service.Object["spec"]); !strings.Contains(text, fmt.Sprintf("timeout:%ds", seconds)) {
				return errors.New(text)
			}
			return nil
		})
	}
}

// How the list of clusters shows cluster-2, which is reached through its agent, or dialled. The list has no column VIA where all are dialled.
const throughAgent, dialled = `relay +connected`, `healthy`

// reached checks how serve reaches cluster-2.
func (d *running) reached(t *testing.T, how string) {
	t.Helper()
	assert.Regexp(t, `(?m)^cluster-2 +`+how+` `, d.must(t, "cluster", "list", "--mgmt-context", contextOf("cluster-1")))
}

func leaderDies(t *testing.T, d *running) {
	t.Helper()
	d.reached(t, throughAgent)
	d.timeout(t, 20)
	h, stop := d.record(t), d.load(t)
	first := d.leader(t)
	require.NotEmpty(t, first)
	begin := time.Now()
	require.NoError(t, d.client(t, "cluster-1").Delete(t.Context(), kube.Pods(), planeNamespace, first))
	until(t, "another pod leads", func(context.Context) error {
		if now := d.leader(t); now == "" || now == first {
			return fmt.Errorf("%q does", now)
		}
		return nil
	})
	t.Logf("another pod led after %s", time.Since(begin).Round(time.Millisecond))
	d.timeout(t, 21)
	d.shifted(t)
	d.quiet(t, h, stop)
}

// quiet checks that no request has failed, and that nothing was deleted or written for nothing.
func (d *running) quiet(t *testing.T, h *history, stop func() (int, []string)) {
	t.Helper()
	sent, wrong := stop()
	assert.Empty(t, wrong, "%d requests", sent)
	writes, faults := h.seen()
	assert.Empty(t, faults)
	assert.Positive(t, writes, "the edit was seen")
	t.Logf("%d requests, none failed; %d writes, all of them changes", sent, writes)
}

func upgrades(t *testing.T, d *running) {
	t.Helper()
	engine, err := kind.FindEngine()
	require.NoError(t, err)
	d.image, err = engine.MeshctlImage(t.Context(), d.binary)
	require.NoError(t, err)
	for _, cluster := range clusters {
		require.NoError(t, engine.LoadImage(t.Context(), cluster, d.image))
	}
	assert.Contains(t, d.must(t, "version", "--context", contextOf("cluster-1")), versionBefore)
	h, stop := d.record(t), d.load(t)
	begin := time.Now()
	d.must(t, "upgrade", "--context", contextOf("cluster-1"), "--image", d.image)
	t.Logf("upgraded in %s", time.Since(begin).Round(time.Second))
	until(t, "a pod of the new version leads", func(ctx context.Context) error {
		pod, err := d.client(t, "cluster-1").Get(ctx, kube.Pods(), planeNamespace, d.leader(t))
		if err != nil {
			return err
		}
		if text := fmt.Sprint(pod.Object["spec"]); !strings.Contains(text, d.image) {
			return fmt.Errorf("pod %s is of the version before", pod.GetName())
		}
		return nil
	})
	d.timeout(t, 22)
	d.shifted(t)
	d.quiet(t, h, stop)
	// Agents follow when their clusters are registered again.
	d.register(t, "cluster-1")
	d.register(t, "cluster-2", "--relay")
	assert.NotContains(t, d.must(t, "version", "--context", contextOf("cluster-1")), versionBefore)
	d.reached(t, throughAgent)
}

// register registers a cluster again, with the agent of the newer version.
func (d *running) register(t *testing.T, cluster string, flags ...string) {
	t.Helper()
	d.must(t, append([]string{"cluster", "register", cluster, "--remote-context", contextOf(cluster), "--mgmt-context", contextOf("cluster-1"),
		"--agent-image", d.image}, flags...)...)
}

// leavesRelay has serve dial cluster-2 itself.
func leavesRelay(t *testing.T, d *running) {
	t.Helper()
	h, stop := d.record(t), d.load(t)
	d.register(t, "cluster-2", "--api-server-address", kind.APIServer("cluster-2"))
	d.reached(t, dialled)
	d.timeout(t, 24)
	d.shifted(t)
	d.quiet(t, h, stop)
}

func nodeRestarts(t *testing.T, d *running) {
	t.Helper()
	begin := time.Now()
	docker(t, "restart", node("cluster-2"))
	o := d.options
	o.Progress = progress{t}
	require.NoError(t, demo.Up(t.Context(), o))
	until(t, "requests reach the version that they are for in the other cluster", func(ctx context.Context) error {
		reached, wrong := 0, ""
		err := demo.Send(ctx, d.options, "productpage-v1", app.Call{URL: "http://reviews:9080/reviews/1", Count: 40, Parallel: 10, TimeoutMs: 5000}, func(traffic demo.Traffic) {
			for _, a := range traffic.Answers {
				switch {
				case a.Status != 200:
					wrong = fmt.Sprintf("%d x %d %s", a.Count, a.Status, a.Error)
				case a.Cluster == "cluster-2" && a.Workload != "reviews-v3":
					wrong = fmt.Sprintf("%d are answered by %s", a.Count, a.Pod)
				case a.Cluster == "cluster-2":
					reached += a.Count
				}
			}
		})
		if err == nil && (wrong != "" || reached == 0) {
			err = fmt.Errorf("%d reached it, and: %s", reached, wrong)
		}
		return err
	})
	t.Logf("all is well %s after the restart", time.Since(begin).Round(time.Second))
	d.reached(t, throughAgent)
	d.timeout(t, 23)
	d.shifted(t)
}

func uninstalls(t *testing.T, d *running) {
	t.Helper()
	planned := d.must(t, "uninstall", "--context", contextOf("cluster-1"), "--dry-run")
	assert.Contains(t, planned, "cluster cluster-2 is deregistered")
	begin := time.Now()
	d.must(t, "uninstall", "--context", contextOf("cluster-1"), "--yes")
	t.Logf("uninstalled in %s", time.Since(begin).Round(time.Second))
	for _, cluster := range clusters {
		until(t, "nothing of meshctl is left in "+cluster, func(context.Context) error {
			if left := d.ours(t, cluster); len(left) > 0 {
				return fmt.Errorf("%v", left)
			}
			return nil
		})
	}
	// The application goes on without it, each cluster by itself.
	until(t, "requests in a cluster are answered", func(ctx context.Context) error {
		var wrong []string
		err := demo.Send(ctx, d.options, "productpage-v1", app.Call{URL: "http://reviews:9080/reviews/1", Count: 20, Parallel: 5}, func(traffic demo.Traffic) {
			for _, a := range traffic.Answers {
				if a.Status != 200 || a.Cluster != "cluster-1" {
					wrong = append(wrong, fmt.Sprintf("%d %s %s", a.Status, a.Cluster, a.Error))
				}
			}
		})
		if err == nil && len(wrong) > 0 {
			err = errors.New(strings.Join(wrong, ", "))
		}
		return err
	})
}

// ours are the objects that meshctl has written. Workloads that it restarted are not among them.
func (d *running) ours(t *testing.T, cluster string) (left []string) {
	t.Helper()
	workloads := []string{"deployments", "replicasets", "daemonsets", "statefulsets"}
	namespaces := []string{planeNamespace, planeNamespace + "-agent"}
	wanted := func(kind schema.GroupVersionResource) bool { return kind.Resource != "events" }
	err := d.client(t, cluster).Each(t.Context(), wanted, func(kind schema.GroupVersionResource, o *unstructured.Unstructured) {
		if slices.Contains(workloads, kind.Resource) && !slices.Contains(namespaces, o.GetNamespace()) {
			return
		}
		for _, m := range o.GetManagedFields() {
			if strings.HasPrefix(m.Manager, "meshctl") && m.Manager != "meshctl-demo" || slices.Contains(namespaces, o.GetNamespace()) {
				left = append(left, kind.Resource+" "+o.GetNamespace()+"/"+o.GetName())
				return
			}
		}
	})
	require.NoError(t, err)
	return left
}

func goesDown(t *testing.T, d *running) {
	t.Helper()
	o := d.options
	o.Progress = progress{t}
	require.NoError(t, demo.Down(t.Context(), o))
	assert.Empty(t, nodes(t))
}
