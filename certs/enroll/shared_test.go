package enroll

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const aSharedToken = "Xk2pQ9vTz7LmN4aB"

// viaAgents are calls to Agents, as the hub makes them.
type viaAgents struct {
	calls
	agents *Agents
}

func (c viaAgents) Enroll(ctx context.Context, _ *tls.Config, token string, request []byte) (string, []byte, []byte, error) {
	return c.agents.Enroll(ctx, token, request, c.w.uid, "192.0.2.7")
}

// share gives hub and agent a token that agents share, and the agent the root of the hub.
func (w *world) share(hubHas string) {
	w.t.Helper()
	if hubHas != "" {
		_, err := w.store.create(w.t.Context(), TokenSecret, map[string][]byte{TokenKey: []byte(hubHas + "\n"), pki.TLSCertKey: {}, pki.TLSKeyKey: {}})
		require.NoError(w.t, err)
	}
	roots, _, err := w.store.Root(w.t.Context())
	require.NoError(w.t, err)
	_, err = w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace).Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: RootSecret}, Data: map[string][]byte{pki.TLSRootKey: roots.PEM()},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.give(aSharedToken)
	w.keeper.Plane = ""
	w.keeper.Hub = viaAgents{calls{w}, NewAgents(w.store)}
}

func (w *world) waiting() snapshot.RelayWaitings {
	w.t.Helper()
	data, err := w.store.data(w.t.Context(), snapshot.RelayWaitingSecret)
	require.NoError(w.t, err)
	all, err := snapshot.ParseRelayWaitings(data[snapshot.RelayWaitingKey], *w.now.Load())
	require.NoError(w.t, err)
	return all
}

// TestASharedTokenWaitsForApproval: the agent is noted with its UID, address and key, gets nothing before it is approved, and a certificate
// then, once: another agent with the token and the name gets none.
func TestASharedTokenWaitsForApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.share(aSharedToken)
	ctx := t.Context()
	err := w.keeper.Start(ctx)
	require.ErrorContains(t, err, "waits for approval")
	require.ErrorContains(t, err, "meshctl cluster approve west")
	assert.NotContains(t, err.Error(), aSharedToken)
	_, err = w.keeper.Own()
	require.Error(t, err)
	require.Len(t, w.waiting().Agents, 1)
	one := w.waiting().Agents[0]
	assert.Equal(t, []string{"west", "uid-1", KeyID(w.keeper.asked.key.Public()), "192.0.2.7"}, []string{one.Cluster, one.UID, one.Key, one.Address})

	w.at(time.Minute)
	require.ErrorContains(t, w.keeper.Start(ctx), "waits for approval")
	assert.Equal(t, []snapshot.RelayWaiting{one}, w.waiting().Agents, "the same agent, and no write")

	require.NoError(t, w.store.Approve(ctx, one))
	mine := w.keeper.asked
	w.keeper.asked.token = "" // it is started again, and has another key
	w.at(2 * time.Minute)
	require.ErrorContains(t, w.keeper.Start(ctx), "waits for approval")
	assert.Len(t, w.waiting().Of("west"), 2)
	w.keeper.asked = mine
	w.uid = "uid-2"
	w.at(3 * time.Minute)
	require.ErrorContains(t, w.keeper.Start(ctx), "waits for approval", "approved for another UID")
	w.uid = "uid-1"
	w.at(4 * time.Minute)
	require.NoError(t, w.keeper.Start(ctx))
	require.NoError(t, w.admit())
	assert.Equal(t, "plane-1", w.keeper.Plane)
	assert.Empty(t, w.waiting().Agents)
	left, err := w.keeper.secret(ctx, TokenSecret)
	require.NoError(t, err)
	assert.Nil(t, left, "as in Gloo Mesh, it is there until there is a certificate")

	// Somebody puts the token there again, as tools do that keep manifests.
	w.give(aSharedToken)
	found, err := w.keeper.useToken(ctx)
	require.NoError(t, err)
	assert.False(t, found)
	require.NoError(t, w.keeper.Start(ctx))

	w.uid = "uid-2"
	other := &Keeper{Client: w.keeper.Client, Namespace: w.keeper.Namespace, Cluster: "west", ServerName: "hub.example", Hub: w.keeper.Hub, Log: w.keeper.Log, Now: w.keeper.Now}
	w.at(5 * time.Minute)
	_, err = other.useToken(ctx)
	require.ErrorContains(t, err, "the name is that of the cluster with UID uid-1")
	assert.Empty(t, w.waiting().Agents, "it does not even wait")

	// Revoked, it waits again.
	w.uid = "uid-1"
	require.NoError(t, w.store.Revoke(ctx, "west"))
	w.at(6 * time.Minute)
	_, err = other.useToken(ctx)
	require.ErrorContains(t, err, "waits for approval")
}

// TestSharedTokensThatAreOfNoUse: without the hub's Secret there is none, and nothing is noted.
func TestSharedTokensThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hubHas string
		change func(w *world)
		want   string
	}{
		"the hub has none":      {"", nil, "is none of meshctl's"},
		"the hub has another":   {"Xk2pQ9vTz7LmN4aC", nil, "is none of meshctl's"},
		"the hub's is short":    {"Xk2pQ9vTz7LmN4a", nil, "must have at least 16 characters"},
		"the agent has no name": {aSharedToken, func(w *world) { w.keeper.Cluster = "" }, "--relay-cluster NAME"},
		"the name is none":      {aSharedToken, func(w *world) { w.keeper.Cluster = "west.example" }, "cannot have the name"},
		"no UID":                {aSharedToken, func(w *world) { w.uid = "" }, "does not say which cluster it is in"},
		"the root is not known": {aSharedToken, func(w *world) {
			require.NoError(w.t, w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace).Delete(w.t.Context(), RootSecret, metav1.DeleteOptions{}))
		}, "the shared token is sent to nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.share(c.hubHas)
			if c.change != nil {
				c.change(w)
			}
			err := w.keeper.Start(t.Context())
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), aSharedToken)
			assert.Empty(t, w.waiting().Agents)
		})
	}
}

// TestTheTokenOfTheHubsOwnAgentIsNotShared: the management cluster has an agent, too, with a token in the same Secret.
func TestTheTokenOfTheHubsOwnAgentIsNotShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.invite("")
	_, err := w.store.create(t.Context(), TokenSecret, map[string][]byte{TokenKey: []byte(token.Text()), pki.TLSCertKey: {}, pki.TLSKeyKey: {}})
	require.NoError(t, err)
	shared, err := NewAgents(w.store).sharedText(t.Context())
	require.NoError(t, err)
	assert.Empty(t, shared)
}

// TestManyThatWaitAreBounded: whoever has the token can ask for many names; the oldest are out, and counted, and requests are spread.
func TestManyThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.share(aSharedToken)
	agents := NewAgents(w.store)
	key, err := identity.NewKey(rand.Reader)
	require.NoError(t, err)
	ask := func(n int) error {
		request, err := identity.SharedRequest(rand.Reader, key, fmt.Sprintf("c%d", n))
		require.NoError(t, err)
		_, _, _, err = agents.Enroll(t.Context(), aSharedToken, request, "uid-1", "192.0.2.7")
		return err
	}
	for n := range snapshot.RelayWaitingMost + 2 {
		w.at(time.Duration(n+1) * time.Second)
		require.ErrorContains(t, ask(n), "waits for approval")
		require.ErrorContains(t, ask(n), "many agents with the shared token ask at once")
	}
	all := w.waiting()
	assert.Len(t, all.Agents, snapshot.RelayWaitingMost)
	assert.EqualValues(t, 2, all.Dropped)
	assert.Equal(t, "c2", all.Agents[0].Cluster)
}
