package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
)

// TestInspectAndCheckWriteNothing: what can be known before registering.
func TestInspectAndCheckWriteNothing(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	before := inventory(t, management)
	found, err := cluster.Inspect(t.Context(), cluster.InspectOptions{Config: management, Context: "prod"})
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+`, found.Version)
	assert.Len(t, found.UID, 36)
	assert.Nil(t, found.Members, "no type of ours is installed")
	options := cluster.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management}
	_, err = cluster.Check(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, before, inventory(t, management))

	_, err = cluster.Register(t.Context(), options)
	require.NoError(t, err)
	found, err = cluster.Inspect(t.Context(), cluster.InspectOptions{Config: management})
	require.NoError(t, err)
	there, err := cluster.Inspect(t.Context(), cluster.InspectOptions{Config: remote})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"east": there.UID}, found.Members)

	options.Name = "west"
	_, err = cluster.Check(t.Context(), options)
	require.ErrorContains(t, err, "it is registered as east already")
	_, err = cluster.Inspect(t.Context(), cluster.InspectOptions{Config: at(remote, closedPort(t)), Context: "typo"})
	require.ErrorContains(t, err, `the cluster (context "typo", https://`)
	_, err = cluster.Inspect(t.Context(), cluster.InspectOptions{Config: rest.AnonymousClientConfig(remote)})
	require.Error(t, err)
}
