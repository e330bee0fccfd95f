package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/registration"
)

// TestUninstall: after it, both clusters have the objects that they had before meshctl came.
func TestUninstall(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	w := newEnvironment(t, withBookinfo)
	var before [][]string
	for _, c := range w.clusters {
		before = append(before, namesOfAll(t, c))
	}
	w.startServe()
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	w.apply("cluster-1", manifests.VirtualMesh())
	w.apply("cluster-1", manifests.Policies())
	w.awaitRoutes(shifted)

	planned := w.must("uninstall", "--context", "cluster-1", "--dry-run").stdout
	assert.Contains(t, planned, "1 TrafficPolicy is deleted")
	assert.Contains(t, planned, "cluster cluster-2 is deregistered")
	assert.NotContains(t, planned, "cannot be cleaned")

	done := make(chan result, 1)
	go func() { done <- w.run("uninstall", "--context", "cluster-1", "--yes") }()
	w.until("the Deployment of serve is gone", func(ctx context.Context) error {
		select {
		case r := <-done:
			done <- r
			return nil // it failed
		default:
		}
		_, err := w.clients["cluster-1"].Get(ctx, kube.Deployments(), mgmt, registration.ServeName)
		switch {
		case err == nil:
			return errors.New("it is there")
		case !apierrors.IsNotFound(err):
			return err
		}
		return nil
	})
	w.stopServe() // as the kubelet does
	r := <-done
	require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
	for i, c := range w.clusters {
		w.until("nothing of meshctl is left in "+c.Name(), func(context.Context) error {
			left := slices.DeleteFunc(namesOfAll(t, c), func(name string) bool { return slices.Contains(before[i], name) })
			if len(left) > 0 {
				return fmt.Errorf("%v\n%s%s", left, r.stdout, r.stderr)
			}
			return nil
		})
		now := namesOfAll(t, c)
		assert.Empty(t, slices.DeleteFunc(before[i], func(name string) bool { return slices.Contains(now, name) }), "what was there is there")
	}
}

// namesOfAll are the objects of a cluster but for those that its controllers make anew all the time.
func namesOfAll(t requireT, c *local.Cluster) (out []string) {
	ofControllers := []string{"events", "pods", "replicasets", "endpointslices", "endpoints", "leases", "componentstatuses", "apiservices"}
	eachObject(t, c, func(kind schema.GroupVersionResource) bool { return !slices.Contains(ofControllers, kind.Resource) },
		func(kind schema.GroupVersionResource, o *unstructured.Unstructured) {
			out = append(out, kind.GroupResource().String()+" "+o.GetNamespace()+"/"+o.GetName())
		})
	return out
}
