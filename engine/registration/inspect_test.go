package registration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/registration"
)

// TestInspectAndCheckWriteNothing: what can be known before registering.
func TestInspectAndCheckWriteNothing(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	before := inventory(t, management)
	found, err := registration.Inspect(t.Context(), registration.InspectOptions{Config: management, Context: "prod"})
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+`, found.Version)
	assert.Len(t, found.UID, 36)
	assert.Nil(t, found.Members, "no type of ours is installed")
	options := registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management}
	_, err = registration.Check(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, before, inventory(t, management))

	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	found, err = registration.Inspect(t.Context(), registration.InspectOptions{Config: management})
	require.NoError(t, err)
	there, err := registration.Inspect(t.Context(), registration.InspectOptions{Config: remote})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"east": there.UID}, found.Members)

	options.Name = "west"
	_, err = registration.Check(t.Context(), options)
	require.ErrorContains(t, err, "it is registered as east already")
	_, err = registration.Inspect(t.Context(), registration.InspectOptions{Config: at(remote, closedPort(t)), Context: "typo"})
	require.ErrorContains(t, err, `the cluster (context "typo", https://`)
	_, err = registration.Inspect(t.Context(), registration.InspectOptions{Config: rest.AnonymousClientConfig(remote)})
	require.Error(t, err)
}
