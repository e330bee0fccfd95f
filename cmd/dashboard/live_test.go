package dashboard

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/api/crds"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var sandbox sandboxtest.Sandbox

// TestLive follows a real management cluster: a policy that is applied shows.
func TestLive(t *testing.T) {
	t.Parallel()
	config := sandbox.APIServer(t)
	client, err := kube.New("management", config)
	require.NoError(t, err)
	definitions, err := crds.All()
	require.NoError(t, err)
	for _, crd := range definitions {
		data, err := yaml.Marshal(crd)
		require.NoError(t, err)
		require.NoError(t, client.ApplyYAML(t.Context(), data))
	}
	require.NoError(t, client.ApplyYAML(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: gloo-mesh}\n")))
	apply := func(data []byte) {
		// A new kind takes a moment until discovery offers it.
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			fresh, err := kube.New("management", config)
			require.NoError(c, err)
			require.NoError(c, fresh.ApplyYAML(t.Context(), data))
		}, time.Minute, 200*time.Millisecond)
	}
	for _, file := range []string{"mesh.yaml", "workload.yaml", "destination.yaml"} {
		data, err := os.ReadFile(filepath.Join(bookinfo, "..", "out", "management", file))
		require.NoError(t, err)
		apply(data)
	}
	streams, _, _, _ := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)
	factory.Config = func(string, string) (*rest.Config, error) { return rest.CopyConfig(config), nil }
	source, err := newLive(t.Context(), &Options{Streams: streams, Namespace: snapshot.DefaultNamespace, factory: factory})
	require.NoError(t, err)
	news, err := source.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, news.World.Destinations().Rows, 8)
	require.Empty(t, news.World.Policies().Rows)

	apply([]byte("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: just-now, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}\n"))
	applied := time.Now()
	for len(news.World.Policies().Rows) == 0 && time.Since(applied) < 10*time.Second {
		news, err = source.Next(t.Context())
		require.NoError(t, err)
	}
	t.Logf("seen after %s", time.Since(applied))
	require.Len(t, news.World.Policies().Rows, 1)
	assert.Contains(t, news.World.Policies().Rows[0].Cells, "just-now")
}
