package serve

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestASecretThatLeadsElsewhere fills the Secret of one cluster with the kubeconfig of
// another: nothing of the one is written into the other.
func TestASecretThatLeadsElsewhere(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	clusters, serve, before := servedDemo(t)
	management, client := configOf(t, clusters[0]), clientOf(t, clusters[0])

	secrets := sandboxtest.Clientset(t, management).CoreV1().Secrets("gloo-mesh")
	original := sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2")
	fill := func(kubeconfig []byte) {
		t.Helper()
		secret := sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2")
		secret.Data[cluster.SecretKey] = kubeconfig
		_, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	fill(sandboxtest.Secret(t, management, "gloo-mesh", "cluster-1").Data[cluster.SecretKey])
	stray := map[string]bool{}
	began := time.Now()
	said := assert.Eventually(t, func() bool {
		strays(t, clusters[0], stray)
		return strings.Contains(messageOf(t, client, "cluster-2"), "is another cluster")
	}, waittest.Limit(), 20*time.Millisecond)
	for time.Since(began) < 5*time.Second {
		strays(t, clusters[0], stray)
	}
	assert.Empty(t, slices.Sorted(maps.Keys(stray)), "objects for cluster-2 in cluster-1")
	assert.Equal(t, before, specs(t, clusters))
	t.Logf("status of cluster-2 (said: %v): %s", said, messageOf(t, client, "cluster-2"))
	code, text := serve.get("/readyz")
	assert.Equal(t, http.StatusOK, code, text)

	t.Log("the previous connection stays in use, for reading and for writing")
	require.NoError(t, client.Delete(t.Context(), snapshot.TrafficPolicy.GroupVersionResource(), "gloo-mesh", "reviews-shift"))
	until(t, "its route is gone", func() bool { return len(routes(t, client)) == 0 })
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	until(t, "its route is back", func() bool { return len(routes(t, client)) == 3 })

	t.Log("the Secret is restored")
	fill(original.Data[cluster.SecretKey])
	until(t, "it is accepted", func() bool { return messageOf(t, client, "cluster-2") == "" })
	left := map[string]bool{}
	for _, c := range clusters {
		strays(t, c, left)
	}
	assert.Empty(t, left, "left behind")
}

// strays adds the generated objects in a cluster that are another's.
func strays(t *testing.T, c *local.Cluster, found map[string]bool) {
	t.Helper()
	client := clientOf(t, c)
	for _, kind := range []snapshot.Kind{snapshot.AuthorizationPolicy, snapshot.ServiceEntry, snapshot.DestinationRule, snapshot.Gateway, snapshot.VirtualService} {
		list, err := client.List(t.Context(), kind.GroupVersionResource(), "")
		require.NoError(t, err)
		for i := range list {
			if at := list[i].GetLabels()[snapshot.ClusterLabel]; at != "" && at != c.Name() {
				found[kind.String()+" "+list[i].GetNamespace()+"/"+list[i].GetName()] = true
			}
		}
	}
}

// messageOf is what the status of a KubernetesCluster says; empty if it is accepted.
func messageOf(t *testing.T, client *kube.Client, name string) string {
	t.Helper()
	object, err := client.Get(t.Context(), snapshot.KubernetesCluster.GroupVersionResource(), "gloo-mesh", name)
	require.NoError(t, err)
	list, _, err := unstructured.NestedSlice(object.Object, "status", "status")
	require.NoError(t, err)
	var said []string
	for _, status := range list {
		if message, _, _ := unstructured.NestedString(status.(map[string]any), "message"); message != "" {
			said = append(said, message)
		}
	}
	return strings.Join(said, "; ")
}
