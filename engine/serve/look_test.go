package serve

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestLook: what Run would see at its start, in one look.
func TestLook(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 1)
	config := configOf(t, servers[0])
	look := func(ctx context.Context) (*snapshot.Input, error) {
		return Look(ctx, Options{Management: config, Log: slog.New(slog.DiscardHandler)})
	}
	var missing *watch.MissingCRDsError
	_, err := look(t.Context())
	require.ErrorAs(t, err, &missing)

	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	client, err := kube.New("cluster-1", config)
	require.NoError(t, err)
	require.NoError(t, client.ApplyYAML(t.Context(), []byte(`{apiVersion: multicluster.solo.io/v1alpha1, kind: KubernetesCluster, metadata: {name: lost, namespace: gloo-mesh}, spec: {secretName: lost}}`)))
	in, err := look(t.Context())
	require.NoError(t, err)
	require.Len(t, in.Clusters, 2)
	assert.Equal(t, []snapshot.Sync{snapshot.Synced, snapshot.Unsynced}, []snapshot.Sync{in.Clusters[0].Sync, in.Clusters[1].Sync})
	assert.NotEmpty(t, in.Clusters[0].Services)
	assert.Contains(t, in.Clusters[1].Reason, "Secret is missing")
	meshes, err := client.List(t.Context(), kube.Discovery("meshes"), "gloo-mesh")
	require.NoError(t, err)
	assert.Empty(t, meshes, "nothing is written")

	ended, end := context.WithCancel(t.Context())
	end()
	_, err = look(ended)
	require.ErrorIs(t, err, context.Canceled)
}
