package accesslogs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/accesslog"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const tapped = `
apiVersion: v1
kind: Namespace
metadata: {name: gloo-mesh}
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Workload
metadata:
  name: reviews-v1-bookinfo-cluster-1-deployment
  namespace: gloo-mesh
  labels: {cluster.discovery.mesh.gloo.solo.io: cluster-1, cluster.multicluster.solo.io: "", owner.discovery.mesh.gloo.solo.io: gloo-mesh}
spec:
  kubernetes:
    controller: {name: reviews-v1, namespace: bookinfo, clusterName: cluster-1}
    podLabels: {app: reviews, version: v1}
    serviceAccountName: reviews
  mesh: {name: istiod-istio-system-cluster-1, namespace: gloo-mesh}
---
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: cluster-1, namespace: gloo-mesh}
spec: {secretName: cluster-1, clusterDomain: cluster.local}
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata:
  name: istiod-istio-system-cluster-1
  namespace: gloo-mesh
  labels: {cluster.discovery.mesh.gloo.solo.io: cluster-1, cluster.multicluster.solo.io: "", owner.discovery.mesh.gloo.solo.io: gloo-mesh}
spec: {istio: {installation: {cluster: cluster-1, namespace: istio-system, version: 1.31.0}}}
---
apiVersion: observability.enterprise.mesh.gloo.solo.io/v1
kind: AccessLogRecord
metadata: {name: tap-killed, namespace: gloo-mesh, annotations: {observability.enterprise.mesh.gloo.solo.io/until: "2026-01-01T00:00:00Z"}}
spec: {}
---
apiVersion: observability.enterprise.mesh.gloo.solo.io/v1
kind: AccessLogRecord
metadata: {name: tap-of-another, namespace: gloo-mesh, annotations: {observability.enterprise.mesh.gloo.solo.io/until: "2100-01-01T00:00:00Z"}}
spec: {}
---
apiVersion: observability.enterprise.mesh.gloo.solo.io/v1
kind: AccessLogRecord
metadata: {name: books, namespace: gloo-mesh}
spec: {}
`

// recordsOf are the AccessLogRecords of a management cluster, by name.
func recordsOf(t *testing.T, config *rest.Config) map[string]map[string]any {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	list, err := client.Resource(snapshot.AccessLogRecord.GroupVersionResource()).Namespace("gloo-mesh").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]map[string]any{}
	for i := range list.Items {
		out[list.Items[i].GetName()] = list.Items[i].Object
	}
	return out
}

// TestTap makes a record of one workload for a while, and leaves nothing, however it ends.
func TestTap(t *testing.T) {
	t.Parallel()
	config := registrationtest.APIServer(t)
	sandboxtest.Apply(t, config, []byte(tapped))
	var interrupt func()
	seen := make(chan map[string]map[string]any, 1000)
	asked := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		records := recordsOf(t, config)
		asked <- r.URL.Query().Get("workload")
		if _, first := records["tap-killed"]; !first { // the tap has made its own
			seen <- records
		}
		answer := report()
		answer.Entries = answer.Entries[:1]
		for name := range records {
			answer.Records = append(answer.Records, accesslog.RecordReport{Name: name, Namespace: "gloo-mesh", State: "ACCEPTED", Workloads: 1, Logging: 1})
		}
		if r.URL.Query().Get("after") != "" && interrupt != nil {
			interrupt()
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	tap := func(ctx context.Context, args ...string) (out, errs string, err error) {
		streams, _, o, e := cmdutil.TestStreams()
		f := cmdutil.NewFactory(streams)
		f.Config = func(string, string) (*rest.Config, error) { return config, nil }
		cmd := NewTapCmd(f, nil)
		cmd.SetArgs(append(args, "--server", server.URL))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err = cmd.ExecuteContext(ctx)
		return o.String(), e.String(), err
	}
	left := func() {
		t.Helper()
		for name := range recordsOf(t, config) {
			assert.Contains(t, []string{"books", "tap-of-another"}, name)
		}
	}

	out, errs, err := tap(t.Context(), "reviews-v1", "--for", "2s")
	require.NoError(t, err, errs)
	assert.Contains(t, out, "/cart/7")
	assert.Contains(t, errs, "logs the requests of reviews-v1 for 2s.")
	assert.Contains(t, errs, "is removed.")
	assert.NotContains(t, errs, "AccessLogRecord books.gloo-mesh", "what others lack is not its matter")
	left()
	assert.Equal(t, "reviews-v1.bookinfo.cluster-1", <-asked, "labels select others, too")
	for name, record := range <-seen {
		if name == "books" || name == "tap-of-another" {
			continue
		}
		assert.True(t, strings.HasPrefix(name, "tap-") && name != "tap-killed", name)
		assert.Equal(t, map[string]any{"workloadSelectors": []any{map[string]any{"kubeWorkloadMatcher": map[string]any{
			"labels": map[string]any{"app": "reviews", "version": "v1"}, "namespaces": []any{"bookinfo"}, "clusters": []any{"cluster-1"},
		}}}}, record["spec"])
	}

	ctx, cancel := context.WithCancel(t.Context())
	interrupt = cancel
	_, errs, err = tap(ctx, "reviews-v1.bookinfo", "--for", "10m")
	require.NoError(t, err, errs)
	assert.Contains(t, errs, "is removed.")
	left()

	_, _, err = tap(t.Context(), "nobody")
	require.ErrorContains(t, err, "nobody")
	server.Close()
	_, errs, err = tap(t.Context(), "reviews-v1")
	require.ErrorContains(t, err, "check that it runs")
	assert.NotContains(t, errs, "is removed.", "nothing is made that nobody shows")
	left()
	assert.Contains(t, recordsOf(t, config), "books")
	assert.Contains(t, recordsOf(t, config), "tap-of-another")
	for _, args := range [][]string{{"a", "--for", "0s"}, {"a", "--for", "2h"}, {"a", "--max-rps", "0"}, {}} {
		_, _, err = tap(t.Context(), args...)
		require.Error(t, err)
	}
}
