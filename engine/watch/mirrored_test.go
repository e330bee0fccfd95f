package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAKindThatMayNotBeListedDegradesAlone: the cluster is read, and it is said what is missing.
func TestAKindThatMayNotBeListedDegradesAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resource string
		kind     snapshot.Kind
	}{{"virtualservices", snapshot.VirtualService}, {"gateways", snapshot.Gateway}} {
		server := newLists(t)
		server.refused.Store(&c.resource)
		w := readOf(t, server)
		assert.Len(t, w.is(snapshot.Synced).Pods, 1)
		_, failures := w.state.current()
		require.Len(t, failures, 1)
		assert.Equal(t, snapshot.PermissionsMissing, failures[0].Code)
		assert.Equal(t, snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "gloo-mesh", Name: "west"}, failures[0].Ref)
		assert.Contains(t, failures[0].What, c.resource)

		now := w.state.link.State()
		require.NotNil(t, now.Conn)
		assert.NotEmpty(t, now.Conn.State(c.kind).Refused)
		assert.True(t, now.Conn.State(snapshot.ServiceEntry).Complete())
	}
	server, pods := newLists(t), "pods"
	server.refused.Store(&pods)
	w := readOf(t, server)
	w.is(snapshot.Unsynced)
	assert.Nil(t, w.state.link.State().Conn, "what only is read is needed")
}
