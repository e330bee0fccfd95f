package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// limited lets the gateways of meshes with different roots trust each other: requests between
// the clusters pass and are split as before, and gateways refuse what policies do not allow.
func limited(t *testing.T, e *environment) {
	t.Helper()
	requests := schema.GroupVersionResource{Group: "certificates.mesh.gloo.solo.io", Version: "v1", Resource: "certificaterequests"}
	waittest.NoError(t, "the meshes have left, and restart nothing any more", func() error {
		for name, c := range e.clusters {
			client, err := c.Client()
			if err != nil {
				return err
			}
			if left, err := client.List(t.Context(), requests, ""); err != nil || len(left) > 0 {
				return fmt.Errorf("%s: %d requests: %w", name, len(left), err)
			}
		}
		return nil
	})
	e.apply(t, shift(75, 15, 10))
	e.trustModel(t, map[string]any{"limited": map[string]any{}})
	waittest.NoError(t, "requests pass between the clusters", func() error { // pods may still be replaced
		return e.shares(t.Context(), e.pod(t, "cluster-1", "productpage-v1"))
	})
	waittest.NoError(t, "access of all pairs", func() error { return e.betweenClusters(t) })
	t.Run("gRPC and TCP", func(t *testing.T) {
		e.withEcho(t)
		allowed, refused := e.pod(t, "cluster-1", "productpage-v1"), e.pod(t, "cluster-1", "details-v1")
		host := echoHosts()["cluster-2"]
		for _, url := range []string{"grpc://" + host + ":9090", "tcp://" + host + ":9000"} {
			waittest.NoError(t, url, func() error {
				return errors.Join(
					e.allAre(t.Context(), allowed, app.Call{URL: url, Count: 20}, "cluster-2 echo-v1"),
					e.noneAnswered(t.Context(), refused, app.Call{URL: url, Count: 10}),
				)
			})
		}
	})
	t.Run("transitions of a shift", func(t *testing.T) { e.transitions(t, 30) })
	t.Run("requests that a policy restricts", func(t *testing.T) { restrictedAlike(t, e) })
	t.Run("the root of the gateways is exchanged", func(t *testing.T) { gatewayRoot(t, e) })
}

// trustModel sets how the meshes trust each other; nil for not at all.
func (e *environment) trustModel(t *testing.T, mtls map[string]any) {
	t.Helper()
	vm, err := e.management.Get(t.Context(), kube.Policies("virtualmeshes"), "gloo-mesh", "virtual-mesh")
	require.NoError(t, err)
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": vm.GetAPIVersion(), "kind": vm.GetKind(),
		"metadata": map[string]any{"name": vm.GetName(), "namespace": vm.GetNamespace()}, "spec": vm.Object["spec"]}}
	unstructured.RemoveNestedField(out.Object, "spec", "mtlsConfig")
	if mtls != nil {
		require.NoError(t, unstructured.SetNestedMap(out.Object, mtls, "spec", "mtlsConfig"))
	}
	require.NoError(t, e.management.Apply(t.Context(), out))
}

// betweenClusters calls every service from every workload of the other cluster: productpage of
// the first cluster may call all, and reviews may call ratings.
func (e *environment) betweenClusters(t *testing.T) error {
	t.Helper()
	pods, err := e.pods(t.Context())
	if err != nil {
		return err
	}
	pairs := 0
	for _, from := range pods {
		for _, to := range services() {
			if from.Gateway || from.Cluster == to.cluster {
				continue
			}
			allowed := from.Workload == "productpage-v1" || strings.HasPrefix(from.Workload, "reviews-") && to.name == "ratings"
			all, err := e.send(t.Context(), from, app.Call{URL: "http://" + to.host(from.Cluster), Count: 10, Parallel: 2})
			if err != nil {
				return err
			}
			if answered := all.total() - len(all.failed()); allowed && answered != 10 || !allowed && len(all.failed()) != len(all) {
				return fmt.Errorf("%s in %s calls %v, allowed %t: %v", from.Workload, from.Cluster, to, allowed, all)
			}
			pairs++
		}
	}
	t.Logf("%d pairs", pairs)
	return nil
}

// restrictedAlike allows callers of the other cluster certain requests: the service checks
// those, and gateways the callers.
func restrictedAlike(t *testing.T, e *environment) {
	t.Helper()
	policies, err := e.management.List(t.Context(), kube.Policies("accesspolicies"), "gloo-mesh")
	require.NoError(t, err)
	t.Cleanup(func() {
		for i := range policies {
			e.applyCopy(t, &policies[i])
		}
	})
	for i := range policies {
		restricted := policies[i].DeepCopy()
		require.NoError(t, unstructured.SetNestedStringSlice(restricted.Object, []string{"/open/*"}, "spec", "allowedPaths"))
		e.applyCopy(t, restricted)
	}
	for _, c := range []struct {
		workload     string
		open, closed int // a gateway that refuses a connection has no status to send
	}{{"productpage-v1", 200, 403}, {"reviews-v1", 200, 403}, {"details-v1", 503, 503}} {
		to := target{e, e.pod(t, "cluster-1", c.workload), "http://" + ratingsElsewhere + ":9080"}
		waittest.NoError(t, c.workload, func() error {
			return errors.Join(
				to.want(t.Context(), c.open, app.Call{URL: "/open/1"}),
				to.want(t.Context(), c.closed, app.Call{URL: "/closed"}),
			)
		})
	}
}

// applyCopy writes an object as it was read.
func (e *environment) applyCopy(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, e.management.Apply(context.WithoutCancel(t.Context()), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()}, "spec": o.Object["spec"],
	}}))
}

// gatewayRoot exchanges the root of the gateways under load: no pod restarts, and no request
// fails.
func gatewayRoot(t *testing.T, e *environment) {
	t.Helper()
	before, _ := e.trust(t)
	require.NotEmpty(t, before)
	from, call := e.pod(t, "cluster-1", "productpage-v1"), app.Call{URL: "http://" + ratingsElsewhere + ":9080", Count: 50}
	var there []proxies.Pod
	waittest.NoError(t, "all is as before the other cases", func() (err error) {
		if there, err = e.pods(t.Context()); err == nil && len(there) != 13 {
			err = fmt.Errorf("%d pods", len(there))
		}
		return errors.Join(err, e.allAre(t.Context(), from, call, "cluster-2 ratings-v1"))
	})
	e.drained(t) // the policies of the cases before
	l := e.under(t, from, call.URL, 200)
	e.rotate(t)
	waittest.NoError(t, "the root is another", func() error {
		root, stands := e.trust(t)
		if root == before || !settled(stands) {
			return fmt.Errorf("root %.8s: %s", root, stands)
		}
		return nil
	})
	assert.Greater(t, l.clean(t), 1000)
	now, err := e.pods(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, names(there), names(now), "no pod was restarted")
}

func names(pods []proxies.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Pod)
	}
	return out
}
