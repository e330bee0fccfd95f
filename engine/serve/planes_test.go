package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTwoManagementPlanesAndAnUpgrade: a management plane gives its identity to what a
// version without one wrote; and another one, in a namespace of the same name, that has
// registered the same clusters, changes none of it.
func TestTwoManagementPlanesAndAnUpgrade(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	clusters, first, before := servedDemo(t)
	management, client := configOf(t, clusters[0]), clientOf(t, clusters[0])
	id := planeOf(t, management)

	t.Log("the objects are as a version without identity wrote them")
	_, err := first.stop()
	require.NoError(t, err)
	require.NoError(t, sandboxtest.Clientset(t, management).CoreV1().ConfigMaps("gloo-mesh").Delete(t.Context(), cluster.PlaneName, metav1.DeleteOptions{}))
	relabelled := eachGenerated(t, clusters, `{"metadata":{"labels":{"`+snapshot.PlaneLabel+`":null}}}`)
	require.Equal(t, len(before), relabelled)
	first = start(t, management, "first")
	until(t, "all of them have it again", func() bool {
		return len(generatedWith(t, clusters, snapshot.PlaneLabel+"="+id)) == len(before)
	})
	assert.Equal(t, before, settledSpecs(t, first, client, clusters), "an upgrade changes and replaces nothing")

	t.Log("another management plane registers both clusters")
	for _, r := range []struct {
		name string
		at   *local.Cluster
	}{{"east", clusters[0]}, {"cluster-2", clusters[1]}} {
		report, err := registration.Register(t.Context(), registration.Options{
			Name: r.name, RemoteConfig: configOf(t, r.at), RemoteNamespace: "twin", MgmtConfig: configOf(t, clusters[1]), TokenTTL: 10 * time.Minute,
		})
		require.NoError(t, err)
		assert.Contains(t, strings.Join(report.Notes, "\n"), "management plane "+id+" has registered this cluster")
	}
	other := clientOf(t, clusters[1])
	second := start(t, configOf(t, clusters[1]), "second")
	until(t, "ready", func() bool { code, _ := second.get("/readyz"); return code == http.StatusOK })
	rename := func(manifest []byte) []byte { return bytes.ReplaceAll(manifest, []byte("cluster-1"), []byte("east")) }
	require.NoError(t, other.ApplyYAML(t.Context(), rename(manifests.VirtualMesh())))
	require.NoError(t, other.ApplyYAML(t.Context(), rename(manifests.Policies())))
	twin := planeOf(t, configOf(t, clusters[1]))
	require.NotEqual(t, id, twin)
	until(t, "it writes what the first one does not have", func() bool { return len(generatedWith(t, clusters, snapshot.PlaneLabel+"="+twin)) > 0 })
	until(t, "both say that the other one exists", func() bool {
		return strings.Contains(messageOf(t, client, "cluster-1"), twin) && strings.Contains(messageOf(t, client, "cluster-2"), twin) &&
			strings.Contains(messageOf(t, other, "east"), id) && strings.Contains(messageOf(t, other, "cluster-2"), id)
	})
	listed, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit()})
	require.NoError(t, err)
	for _, c := range listed {
		assert.Equal(t, snapshot.Healthy, c.Health)
		assert.Contains(t, c.Reason, twin)
	}
	until(t, "its policy is not in force", func() bool {
		return strings.Contains(statusText(t, other, "reviews-shift"), "management plane "+id)
	})
	assert.NotContains(t, statusText(t, client, "reviews-shift"), "FAILED")
	assertStands(t, before, clusters)

	t.Log("each goes on without the other")
	require.NoError(t, client.Delete(t.Context(), snapshot.TrafficPolicy.GroupVersionResource(), "gloo-mesh", "reviews-shift"))
	until(t, "the other one's route waits for what lets it through the gateway, which is not its own", func() bool {
		return regexp.MustCompile(`it waits for (Gateway|ServiceEntry) cluster-2/istio-system/\S+, which cannot be written`).MatchString(statusText(t, other, "reviews-shift"))
	})
	require.NoError(t, other.ApplyYAML(t.Context(), []byte(shiftWithin)))
	until(t, "its route that needs none takes the place of the first one's", func() bool { return slices.Contains(routes(t, client), 70) })
	require.NoError(t, other.Delete(t.Context(), snapshot.TrafficPolicy.GroupVersionResource(), "gloo-mesh", "reviews-shift"))
	until(t, "its route is gone", func() bool { return len(routes(t, client)) == 0 })
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	until(t, "the first one's is back", func() bool { return len(routes(t, client)) == 3 })

	t.Log("the other one leaves")
	for name, at := range map[string]*local.Cluster{"east": clusters[0], "cluster-2": clusters[1]} {
		_, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: name, RemoteConfig: configOf(t, at), MgmtConfig: configOf(t, clusters[1])})
		require.NoError(t, err)
	}
	assert.Empty(t, generatedWith(t, clusters, snapshot.PlaneLabel+"="+twin))
	until(t, "nobody else is there", func() bool { return messageOf(t, client, "cluster-1")+messageOf(t, client, "cluster-2") == "" })
	until(t, "all of the first one's objects stand", func() bool { return len(generatedWith(t, clusters, snapshot.PlaneLabel+"="+id)) == len(before) })
}

// shiftWithin is the policy of the demo without the other cluster.
const shiftWithin = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: reviews-shift, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: east}]}
  policy:
    trafficShift:
      destinations:
      - {kubeService: {name: reviews, namespace: bookinfo, clusterName: east, subset: {version: v1}}, weight: 70}
      - {kubeService: {name: reviews, namespace: bookinfo, clusterName: east, subset: {version: v2}}, weight: 30}
`

// planeOf is the identity of the management plane in a cluster.
func planeOf(t *testing.T, management *rest.Config) string {
	t.Helper()
	id, err := cluster.PlaneID(t.Context(), sandboxtest.Clientset(t, management), "gloo-mesh")
	require.NoError(t, err)
	return id
}

// servedDemo is two clusters with the policies of the demo, a replica that serves them, and
// what it has written.
func servedDemo(t *testing.T) (clusters []*local.Cluster, serve *replica, written []string) {
	t.Helper()
	clusters = world(t, 2)
	client := clientOf(t, clusters[0])
	serve = start(t, configOf(t, clusters[0]), "serve")
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.VirtualMesh()))
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	written = settledSpecs(t, serve, client, clusters)
	require.Greater(t, len(written), 20)
	return clusters, serve, written
}

// settledSpecs are the generated objects once nothing is left to write.
func settledSpecs(t *testing.T, serve *replica, client *kube.Client, clusters []*local.Cluster) (stable []string) {
	t.Helper()
	until(t, "everything is written", func() bool {
		_, metrics := serve.get("/metrics")
		idle := strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-1"} 0`) &&
			strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-2"} 0`)
		last := stable
		stable = specs(t, clusters)
		// A route that waits for proxies is in no queue.
		return idle && len(routes(t, client)) == 3 && slices.Equal(stable, last) && slices.Equal(namesOf(stable), wanted(t, configOf(t, clusters[0])))
	})
	return stable
}

// namesOf are specs without UIDs and generations.
func namesOf(specs []string) []string {
	out := make([]string, len(specs))
	for i, spec := range specs {
		out[i] = strings.Join(strings.Fields(spec)[:3], " ")
	}
	slices.Sort(out)
	return out
}

// wanted are the names of what the management plane of a cluster wants to be written, in
// the form of namesOf.
func wanted(t *testing.T, management *rest.Config) (out []string) {
	t.Helper()
	in, err := ReadOnce(t.Context(), Options{Management: management, Log: slog.New(slog.DiscardHandler)}, nil, nil)
	require.NoError(t, err)
	for o := range engine.Translate(in).Output.Objects {
		if slices.Contains(istioWritten(), o.Ref.Kind) {
			out = append(out, fmt.Sprintf("%s %s %s/%s", o.Ref.Cluster, o.Ref.Kind, o.Ref.Namespace, o.Ref.Name))
		}
	}
	slices.Sort(out)
	return out
}

// assertStands: all of these objects are there, unchanged.
func assertStands(t *testing.T, before []string, clusters []*local.Cluster) {
	t.Helper()
	after := specs(t, clusters)
	for _, object := range before {
		assert.Contains(t, after, object)
	}
}

// generatedWith lists the generated objects of all clusters with a label.
func generatedWith(t *testing.T, clusters []*local.Cluster, selector string) (out []string) {
	t.Helper()
	for _, c := range clusters {
		api, err := dynamic.NewForConfig(configOf(t, c))
		require.NoError(t, err)
		for _, kind := range istioWritten() {
			list, err := api.Resource(kind.GroupVersionResource()).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
			require.NoError(t, err)
			for i := range list.Items {
				out = append(out, c.Name()+" "+kind.String()+" "+list.Items[i].GetNamespace()+"/"+list.Items[i].GetName())
			}
		}
	}
	return out
}

// eachGenerated patches all generated objects as somebody else would, and counts them.
func eachGenerated(t *testing.T, clusters []*local.Cluster, patch string) (n int) {
	t.Helper()
	for _, c := range clusters {
		api, err := dynamic.NewForConfig(configOf(t, c))
		require.NoError(t, err)
		for _, kind := range istioWritten() {
			of := api.Resource(kind.GroupVersionResource())
			list, err := of.List(t.Context(), metav1.ListOptions{LabelSelector: snapshot.NetworkingOwnerLabel})
			require.NoError(t, err)
			for i := range list.Items {
				_, err := of.Namespace(list.Items[i].GetNamespace()).Patch(t.Context(), list.Items[i].GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				require.NoError(t, err)
				n++
			}
		}
	}
	return n
}

// statusText is all that the status of a TrafficPolicy says.
func statusText(t *testing.T, client *kube.Client, name string) string {
	t.Helper()
	object, err := client.Get(t.Context(), snapshot.TrafficPolicy.GroupVersionResource(), "gloo-mesh", name)
	require.NoError(t, err)
	raw, err := object.MarshalJSON()
	require.NoError(t, err)
	_, status, _ := strings.Cut(string(raw), `"status":`)
	return status
}
