package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
)

// smi are the kinds that are rendered for Open Service Mesh.
var smi = []schema.GroupVersionResource{
	{Group: "split.smi-spec.io", Version: "v1alpha2", Resource: "trafficsplits"},
	{Group: "access.smi-spec.io", Version: "v1alpha3", Resource: "traffictargets"},
	{Group: "specs.smi-spec.io", Version: "v1alpha4", Resource: "httproutegroups"},
	{Group: "specs.smi-spec.io", Version: "v1alpha4", Resource: "tcproutes"},
}

// TestOpenServiceMesh covers a cluster with Open Service Mesh: policies are
// translated, every permission is used, and no object is left in the end.
func TestOpenServiceMesh(t *testing.T) {
	shard.Only(t, shard.OSM)
	helper := sandboxtest.OSM(t) // building it may take longer than everything else
	w := newEnvironmentOf(t, 1, func(ctx context.Context, c *local.Cluster) error {
		if err := c.InstallOSM(ctx, local.OSMOptions{Helper: helper}); err != nil {
			return err
		}
		client, err := c.Client()
		if err != nil {
			return err
		}
		return client.ApplyYAML(ctx, read(t, "cluster.yaml"))
	})
	w.must("cluster", "register", "cluster-1", "--remote-context", "cluster-1", "--mgmt-context", "cluster-1")
	w.startServe()
	w.until("workloads are discovered", func(context.Context) error {
		if n := len(w.names("cluster-1", kube.Discovery("workloads"))); n < 5 {
			return fmt.Errorf("%d workloads", n)
		}
		return nil
	})

	w.apply("cluster-1", read(t, "1-access.yaml"))
	w.apply("cluster-1", read(t, "2-split.yaml"))
	w.until("the policies are translated", func(context.Context) error {
		for _, kind := range smi {
			if len(w.names("cluster-1", kind)) == 0 {
				return fmt.Errorf("no %s", kind.Resource)
			}
		}
		return nil
	})
	for _, name := range []string{"cart", "stock-read", "stock-write"} {
		w.awaitState("accesspolicies", name, "ACCEPTED")
	}
	w.awaitState("trafficpolicies", "cart", "ACCEPTED")

	for _, name := range []string{"cart", "stock-read", "stock-write"} {
		w.delete("cluster-1", kube.Policies("accesspolicies"), mgmt, name)
	}
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "cart")
	w.until("all translated objects are deleted", func(context.Context) error {
		for _, kind := range smi {
			if left := w.names("cluster-1", kind); len(left) > 0 {
				return fmt.Errorf("%s %v", kind.Resource, left)
			}
		}
		return nil
	})
	granted, used := ofOSM(w.granted("cluster-1")), ofOSM(w.used("cluster-1", agents("cluster-1"), "cluster-1"))
	assert.Len(t, granted, 4*5+2, "list, watch, create, patch and delete of four kinds; list and watch of one")
	assert.Equal(t, granted, used, "granted and used permissions")

	w.must("cluster", "deregister", "cluster-1", "--remote-context", "cluster-1", "--mgmt-context", "cluster-1", "--yes")
	w.stopServe()
}

// ofOSM are the permissions on kinds of Open Service Mesh.
func ofOSM(permissions []string) []string {
	return slices.DeleteFunc(permissions, func(permission string) bool {
		return !strings.HasSuffix(permission, ".smi-spec.io") && !strings.HasSuffix(permission, ".openservicemesh.io")
	})
}

// read reads a file of the proof for Open Service Mesh.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("proof/testdata/osm/" + name)
	require.NoError(t, err)
	return data
}
