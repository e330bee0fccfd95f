package serve

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestReadOnce: what Run would see at its start, in one reading.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 1)
	config := configOf(t, servers[0])
	look := func(ctx context.Context) (*snapshot.Input, error) {
		return ReadOnce(ctx, Options{Management: config, Log: slog.New(slog.DiscardHandler)}, nil, nil)
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

// TestReadOnceFromOutside reads a cluster whose stored address only pods can dial.
func TestReadOnceFromOutside(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 2)
	management, remote := configOf(t, servers[0]), configOf(t, servers[1])
	_, err := registration.Install(t.Context(), registration.InstallOptions{Config: management, Image: "meshctl:1"})
	require.NoError(t, err)
	for _, o := range []registration.Options{
		{Name: "east", RemoteConfig: remote, APIServerAddress: "east-control-plane.invalid:6443"},
		{Name: "west", RemoteConfig: management},
	} {
		o.MgmtConfig = management
		_, err = registration.Register(t.Context(), o)
		require.NoError(t, err)
	}
	look := func(detour cluster.Detour) []*snapshot.Cluster {
		t.Helper()
		in, err := ReadOnce(t.Context(), Options{Management: management, Log: slog.New(slog.DiscardHandler)}, detour, nil)
		require.NoError(t, err)
		require.Len(t, in.Clusters, 2)
		return in.Clusters
	}
	for i, c := range look(nil) {
		assert.Equal(t, snapshot.Unsynced, c.Sync, c.Name)
		assert.Equal(t, "the host name of "+[]string{"https://east-control-plane.invalid:6443", "https://kubernetes.default.svc"}[i]+" cannot be resolved", c.Reason)
	}
	// A context of which nothing but the address can be used: what is read is read with the stored credential.
	nobody := rest.CopyConfig(remote)
	nobody.Impersonate.UserName = "nobody"
	wrong := registration.NewDetours(func() []registration.Context { return []registration.Context{{Name: "east", Config: nobody}} }, 0)
	assert.Equal(t, snapshot.Unsynced, look(wrong.Find)[0].Sync, "it does not say which cluster it is")
	detours := registration.NewDetours(func() []registration.Context {
		return []registration.Context{{Name: "west", Config: management}, {Name: "east", Config: remote}}
	}, 0)
	for _, c := range look(detours.Find) {
		assert.Equal(t, snapshot.Synced, c.Sync, "%s: %s", c.Name, c.Reason)
		assert.NotEmpty(t, c.Services)
	}
	assert.Len(t, detours.Notes(), 2)
}
