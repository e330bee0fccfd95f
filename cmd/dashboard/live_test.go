package dashboard

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
)

// management is a real management cluster with the CRDs and the namespace.
func management(t *testing.T) *rest.Config {
	t.Helper()
	config := registrationtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, snapshot.DefaultNamespace)
	return config
}

// TestLive follows a real management cluster: a policy that is applied shows.
func TestLive(t *testing.T) {
	t.Parallel()
	config := management(t)
	input, _, err := offline.Load(os.DirFS(bookinfo))
	require.NoError(t, err)
	discovered, err := offline.Files(engine.Translate(input).Output)
	require.NoError(t, err)
	for _, file := range []string{"mesh.yaml", "workload.yaml", "destination.yaml"} {
		sandboxtest.Apply(t, config, discovered[path.Join(offline.ManagementFolder, file)])
	}
	sandboxtest.Apply(t, config, []byte(registrations))
	viewer := rest.CopyConfig(config)
	viewer.Impersonate = rest.ImpersonationConfig{UserName: "viewer"}
	sandboxtest.Apply(t, config, []byte(viewerRole))

	for name, access := range map[string]*rest.Config{"all": config, "no secrets": viewer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := startLive(t, access)
			if name == "all" {
				assert.NotContains(t, source.Name(), "only")
			} else {
				assert.Contains(t, source.Name(), "only: you may not read the clusters' credentials")
			}
			// What is known of clusters that cannot be read stays on the screen.
			await(t, source, func(n *tui.Update) bool {
				return n.Index != nil && len(n.Index.Tables(nil).Destinations().Rows) == 8 && len(n.Index.Tables(n.Facts).Fleet().Rows) == 2
			})
			policy := strings.ReplaceAll(name, " ", "-")
			sandboxtest.Apply(t, config, []byte("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: "+policy+", namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}\n"))
			applied := time.Now()
			latest := await(t, source, func(n *tui.Update) bool {
				return n.Index != nil && slices.ContainsFunc(n.Index.Tables(nil).Policies().Rows, func(r explain.Row) bool { return r.Ref.Name == policy })
			})
			t.Logf("seen after %s", time.Since(applied))
			// Nobody serves here, so nobody takes it up.
			at := slices.IndexFunc(latest.Index.Tables(nil).Policies().Rows, func(r explain.Row) bool { return r.Ref.Name == policy })
			assert.Contains(t, latest.Index.Tables(nil).Policies().Rows[at].Cells, "PENDING")
			assert.Contains(t, latest.Facts, "cluster-1")
			assert.False(t, latest.Facts["cluster-1"].BehindSince.IsZero(), "it concerns the cluster, which so lags behind")
		})
	}
}

func TestLagging(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC) }
	clusters := []*snapshot.Cluster{{Name: "away", Sync: snapshot.Stale}, {Name: "edited", Sync: snapshot.Synced}, {Name: "fine", Sync: snapshot.Synced}}
	first := lagging(nil, clusters, map[string]int{"edited": 1}, at(1))
	assert.Equal(t, map[string]time.Time{"away": at(1), "edited": at(1)}, first)
	second := lagging(first, clusters, map[string]int{"edited": 2, "fine": 1}, at(2))
	assert.Equal(t, map[string]time.Time{"away": at(1), "edited": at(1), "fine": at(2)}, second, "since it was last up to date")
	assert.Equal(t, map[string]time.Time{"away": at(1), "fine": at(2)}, lagging(second, clusters, map[string]int{"fine": 1}, at(3)))
	assert.Equal(t, map[string]time.Time{"fine": at(2)}, lagging(second, clusters[2:], map[string]int{"fine": 1}, at(3)), "a cluster that is gone is forgotten")
}

// startLive is a source as the command makes it.
func startLive(t *testing.T, config *rest.Config) *live {
	t.Helper()
	streams, _, _, _ := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)
	factory.Config = func(string, string) (*rest.Config, error) { return rest.CopyConfig(config), nil }
	source, err := newLive(t.Context(), &Options{Streams: streams, Namespace: snapshot.DefaultNamespace, factory: factory})
	require.NoError(t, err)
	return source
}

// await waits for an update that meets a condition.
func await(t *testing.T, source tui.Source, say func(*tui.Update) bool) *tui.Update {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	var index *explain.Index
	for {
		latest, err := source.Next(ctx)
		require.NoError(t, err)
		if latest.Index == nil {
			latest.Index = index // as before
		}
		if index = latest.Index; say(latest) {
			return latest
		}
	}
}

// registrations are of clusters that nobody can reach: they have no credential.
const registrations = `
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: cluster-1, namespace: gloo-mesh}
---
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: cluster-2, namespace: gloo-mesh}
`

// viewerRole lets somebody see everything but Secrets.
const viewerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules:
- apiGroups: ["*"]
  resources: [meshes, workloads, destinations, kubernetesclusters, settings, virtualmeshes, trafficpolicies, accesspolicies,
    virtualdestinations, servicedependencies, wasmdeployments, accesslogrecords, roles, rolebindings, customresourcedefinitions]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: viewer}
subjects: [{kind: User, name: viewer, apiGroup: rbac.authorization.k8s.io}]
`
