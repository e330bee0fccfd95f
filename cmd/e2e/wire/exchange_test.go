package wire

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// exchanged exchanges the common root of the meshes while workloads call each other, within
// clusters and between them. All pods are replaced, also those of gateways, and no request
// is lost. A gateway that ends cuts the connections that pass through it, and with them the
// requests that are on their way; those to another cluster are tried again.
func exchanged(t *testing.T, e *environment) {
	t.Helper()
	e.during(t, `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: exchange, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: reviews, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
  policy: {retries: {attempts: 2, perTryTimeout: 2s}}
`)
	before, _ := e.trust(t)
	require.NotEmpty(t, before)
	var all []*roaming
	for _, c := range []struct{ cluster, workload, url string }{
		{"cluster-1", "productpage-v1", "http://reviews:9080"},
		{"cluster-1", "productpage-v1", "http://" + ratingsElsewhere + ":9080"},
		{"cluster-2", "reviews-v1", "http://ratings:9080"},
	} {
		all = append(all, e.roam(t, c.cluster, c.workload, c.url, 100))
	}
	e.rotate(t)
	waittest.NoError(t, "the root is another", func() error {
		root, stands := e.trust(t)
		if root == before || !settled(stands) {
			return fmt.Errorf("root %.8s: %s", root, stands)
		}
		return nil
	})
	for _, r := range all {
		r.stop()
		t.Logf("%s: %v; of pods that ended: %v; %d pods", r.what, r.all, r.ended, len(r.pods))
		assert.Empty(t, r.all.failed(), r.what)
		assert.Greater(t, r.all.total(), 1000, r.what)
		assert.Greater(t, len(r.pods), 1, "the pod was replaced")
	}
}

// settled reports whether all members have the certificates that they are to have; the root of before may still be there.
func settled(stands string) bool {
	return strings.HasPrefix(stands, "ESTABLISHED") || strings.Contains(stands, "no member uses any other root")
}

// rotate asks for another root.
func (e *environment) rotate(t *testing.T) {
	t.Helper()
	config, err := e.clusters["cluster-1"].Config()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(kube.Policies("virtualmeshes")).Namespace("gloo-mesh").Patch(t.Context(), "virtual-mesh", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, snapshot.TrustRotateAnnotation, time.Now().UTC().Format(time.RFC3339)), metav1.PatchOptions{})
	require.NoError(t, err)
}

// trust is the root of the VirtualMesh, and where its trust stands.
func (e *environment) trust(t *testing.T) (root, stands string) {
	t.Helper()
	vm, err := e.management.Get(t.Context(), kube.Policies("virtualmeshes"), "gloo-mesh", "virtual-mesh")
	require.NoError(t, err)
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(vm.Object, "status", "trust", field)
		return value
	}
	return text("root"), text("stage") + " " + text("message")
}

// roaming sends requests from whichever pod of a workload is there.
type roaming struct {
	*environment
	what string
	// all are the outcomes; ended are those of pods that ended meanwhile, which nobody waits for.
	all, ended counts
	// pods are those that sent.
	pods map[string]bool
	stop func()
}

// roam starts requests at a rate, until stop.
func (e *environment) roam(t *testing.T, cluster, workload, url string, rate int) *roaming {
	t.Helper()
	r := &roaming{environment: e, what: cluster + " " + workload + " to " + url, all: counts{}, ended: counts{}, pods: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		// As long as a pod has to end, which is the time for which it still sends.
		call := app.Call{URL: url, Rate: rate, Parallel: 10, Count: rate / 2, TimeoutMs: 5000}
		for ctx.Err() == nil {
			if err := r.turn(ctx, cluster, workload, call); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", r.what, err)
				return
			}
		}
	})
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(r.stop)
	return r
}

// turn sends some requests from one pod.
func (r *roaming) turn(ctx context.Context, cluster, workload string, call app.Call) error {
	pod, err := r.running(ctx, cluster, workload)
	if err != nil {
		return err
	}
	sent := counts{}
	err = r.plane.Send(ctx, pod, call, sent.add)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped
	}
	if err != nil || len(sent.failed()) > 0 {
		if there, asked := r.isRunning(ctx, pod); asked != nil || !there {
			for name, n := range sent {
				r.ended[name] += n
			}
			return asked
		}
	}
	r.pods[pod.Pod] = true
	for name, n := range sent {
		r.all[name] += n
	}
	return err
}

// running finds a pod that is not about to end.
func (r *roaming) running(ctx context.Context, cluster, workload string) (proxies.Pod, error) {
	for ctx.Err() == nil {
		pods, err := r.plane.Pods(ctx)
		if err != nil {
			return proxies.Pod{}, err
		}
		for _, p := range pods {
			if p.Cluster != cluster || p.Workload != workload || !p.Ready {
				continue
			}
			if there, err := r.isRunning(ctx, p); err != nil || there {
				return p, err
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return proxies.Pod{}, context.Cause(ctx)
}

// isRunning reports whether a pod is there, and not being deleted.
func (r *roaming) isRunning(ctx context.Context, pod proxies.Pod) (bool, error) {
	client, err := r.clusters[pod.Cluster].Client()
	if err != nil {
		return false, err
	}
	found, err := client.List(ctx, kube.Pods(), pod.Namespace)
	for i := range found {
		if string(found[i].GetUID()) == pod.UID {
			return found[i].GetDeletionTimestamp() == nil, err
		}
	}
	return false, err
}

// apart lets the meshes leave their common root: each gets back the root of its own, no
// request between the clusters passes, and meshctl says so.
func apart(t *testing.T, e *environment) {
	t.Helper()
	e.trustModel(t, nil)
	e.reports(t, snapshot.RootsDiffer)
	waittest.NoError(t, "requests pass within each cluster, and not between them", func() error {
		pods, err := e.pods(t.Context())
		if err != nil {
			return err
		}
		for _, from := range pods {
			if from.Workload != "reviews-v1" {
				continue
			}
			if err := e.allAre(t.Context(), from, app.Call{URL: "http://ratings:9080", Count: 5}, from.Cluster+" ratings-v1"); err != nil {
				return err
			}
		}
		all, err := e.send(t.Context(), e.pod(t, "cluster-1", "productpage-v1"), app.Call{URL: "http://" + ratingsElsewhere + ":9080", Count: 10})
		if n := countIf(all, func(name string) bool { return strings.Contains(name, "remote connection failure") }); err == nil && n != 10 {
			err = fmt.Errorf("between clusters: %v", all)
		}
		return err
	})
}
