package registration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// wait has agents wait for approval in a management cluster.
func wait(t *testing.T, management *rest.Config, agents ...snapshot.RelayWaiting) {
	t.Helper()
	raw, err := snapshot.RelayWaitings{Agents: agents, Dropped: 4}.JSON()
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, management, "gloo-mesh")
	_, err = sandboxtest.Clientset(t, management).CoreV1().Secrets("gloo-mesh").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayWaitingSecret}, Data: map[string][]byte{snapshot.RelayWaitingKey: raw},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestApprove: the agent that waits is listed with the command; it is shown and confirmed before anything is written; its cluster is registered
// by its UID, and the name of another cluster is refused.
func TestApprove(t *testing.T) {
	t.Parallel()
	management := single(t)
	now := time.Now().UTC().Truncate(time.Second)
	agent := func(name, uid, key string) snapshot.RelayWaiting {
		return snapshot.RelayWaiting{Cluster: name, UID: uid, Key: key, Address: "192.0.2.7", Since: now, Last: now}
	}
	gone := agent("gone", "uid-9", "99")
	gone.Last = now.Add(-time.Hour)
	wait(t, management, agent("west", "uid-1", "abc1"), agent("east", "uid-2", "aa"), agent("east", "uid-3", "ab"), gone)

	listed := func() map[string]registration.ClusterStatus {
		t.Helper()
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management})
		require.NoError(t, err)
		out := map[string]registration.ClusterStatus{}
		for _, one := range all {
			out[one.Name] = one
		}
		return out
	}
	before := listed()
	require.Len(t, before, 2)
	assert.Equal(t, snapshot.HealthPending, before["west"].Health)
	assert.Equal(t, "its agent waits for approval: cluster UID uid-1, key SHA-256 abc1, from 192.0.2.7; there were too many that wait, and 4 were dropped so far; if you know it, run `meshctl cluster approve west`", before["west"].Reason)
	assert.Equal(t, snapshot.RelayNotApproved, before["west"].Reasons[0].Code)
	assert.Contains(t, before["east"].Reason, "2 agents wait for approval under its name, the first one with cluster UID uid-2")

	waiting, err := registration.Waiting(t.Context(), management, "gloo-mesh", now)
	require.NoError(t, err)
	assert.Equal(t, []snapshot.RelayWaiting{agent("west", "uid-1", "abc1"), agent("east", "uid-2", "aa"), agent("east", "uid-3", "ab")}, waiting)

	store, shown, agreed := &agents{}, []snapshot.RelayWaiting{}, true
	options := registration.ApproveOptions{
		Name: "west", MgmtConfig: management, Store: store.relay().Store,
		Confirm: func(a snapshot.RelayWaiting) (bool, error) { shown = append(shown, a); return agreed, nil },
	}
	agreed = false
	report, err := registration.Approve(t.Context(), options)
	require.NoError(t, err)
	assert.Empty(t, report.Changes)
	assert.Equal(t, []snapshot.RelayWaiting{agent("west", "uid-1", "abc1")}, shown)
	assert.Equal(t, snapshot.HealthPending, listed()["west"].Health, "nothing was changed")
	agreed = true

	var none *registration.NotWaitingError
	for _, refused := range []struct{ name, key, want string }{
		{"gone", "", "no agent waits for approval"}, {"west", "0", "whose key begins with 0"},
		{"east", "", "2 agents wait for approval under this name"}, {"east", "a", "name its key with --key"},
	} {
		options.Name, options.Key = refused.name, refused.key
		_, err := registration.Approve(t.Context(), options)
		require.ErrorAs(t, err, &none)
		require.ErrorContains(t, err, refused.want)
	}
	options.Name, options.Key = "east", "AB"
	_, err = registration.Approve(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, "uid-3", store.uid)
	kc := kubernetesCluster(t, management, "east")
	assert.Equal(t, "uid-3", kc.GetAnnotations()[cluster.UIDAnnotation])
	assert.Equal(t, map[string]any{"clusterDomain": "cluster.local"}, kc.Object["spec"])
	after := listed()["east"]
	assert.Equal(t, snapshot.HealthUnknown, after.Health, "it is registered, and serve has said nothing of it")
	assert.Contains(t, after.Reason, "2 agents wait")

	_, err = registration.Approve(t.Context(), options)
	require.NoError(t, err, "again")
	options.Key = "aa"
	var taken *registration.NameTakenError
	_, err = registration.Approve(t.Context(), options)
	require.ErrorAs(t, err, &taken)
	assert.Contains(t, taken.Reason, "kube-system UID uid-3, and the agent is in that with uid-2")

	_, err = registration.Register(t.Context(), registration.Options{Name: "west", RemoteConfig: empty(t), MgmtConfig: management})
	require.NoError(t, err)
	options.Name, options.Key = "west", ""
	_, err = registration.Approve(t.Context(), options)
	require.ErrorAs(t, err, &taken)
	assert.Contains(t, taken.Reason, "reached with a credential")
}
