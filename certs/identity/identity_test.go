package identity

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

func newRoot(t *testing.T, plane string) *pki.Authority {
	t.Helper()
	root, err := NewRoot(rand.Reader, now, plane)
	require.NoError(t, err)
	return root
}

func agentOf(t *testing.T, root *pki.Authority, plane, cluster string) Own {
	t.Helper()
	key, err := NewKey(rand.Reader)
	require.NoError(t, err)
	request, err := Request(rand.Reader, key, plane, cluster)
	require.NoError(t, err)
	chain, err := IssueAgent(rand.Reader, now, root, request, plane, cluster)
	require.NoError(t, err)
	return Own{Chain: chain, Key: key, Roots: pki.NewBundle(root.Chain().Root())}
}

func hubOf(t *testing.T, root *pki.Authority, plane string, dns ...string) Own {
	t.Helper()
	key, err := NewKey(rand.Reader)
	require.NoError(t, err)
	chain, err := IssueHub(rand.Reader, now, root, key, plane, dns...)
	require.NoError(t, err)
	return Own{Chain: chain, Key: key, Roots: pki.NewBundle(root.Chain().Root())}
}

// handshake connects both, and returns what the hub says of the agent, and the error of the agent.
func handshake(t *testing.T, hub Own, agent *tls.Config, judge func(tls.ConnectionState) (string, error)) (cluster string, hubErr, agentErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	config := HubTLS(func() (Own, error) { return hub, nil })
	config.Time = clock
	agent.Time = clock
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			hubErr = err
			return
		}
		defer func() { _ = conn.Close() }()
		server := tls.Server(conn, config)
		if hubErr = server.HandshakeContext(context.Background()); hubErr == nil {
			cluster, hubErr = judge(server.ConnectionState())
		}
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), agent)
	if err == nil {
		_ = conn.Close()
	}
	<-done
	return cluster, hubErr, err
}

func TestBothSidesKnowEachOther(t *testing.T) {
	t.Parallel()
	root, other := newRoot(t, "plane-1"), newRoot(t, "plane-1")
	hub := hubOf(t, root, "plane-1", "hub.example")
	west := agentOf(t, root, "plane-1", "west")
	judge := func(roots pki.Bundle, at time.Time, tolerance time.Duration) func(tls.ConnectionState) (string, error) {
		return func(s tls.ConnectionState) (string, error) {
			return AgentOf(s.PeerCertificates, roots, "plane-1", at, tolerance)
		}
	}
	own := func(o Own) func() (Own, error) { return func() (Own, error) { return o, nil } }
	none := west
	none.Chain = nil
	foreign := agentOf(t, other, "plane-1", "west")
	foreign.Roots = west.Roots // it trusts the hub
	elsewhere := agentOf(t, root, "plane-2", "west")
	for name, c := range map[string]struct {
		agent     Own
		hub       Own
		name      string
		at        time.Time
		tolerance time.Duration
		hubSays   string
		agentSays string
	}{
		"west":                       {agent: west, hub: hub, name: "hub.example", at: now},
		"no certificate":             {agent: none, hub: hub, name: "hub.example", at: now, hubSays: "shown no certificate"},
		"signed by somebody else":    {agent: foreign, hub: hub, name: "hub.example", at: now, hubSays: "not trusted"},
		"of another plane":           {agent: elsewhere, hub: hub, name: "hub.example", at: now, hubSays: "names no cluster of the management plane plane-1"},
		"expired":                    {agent: west, hub: hub, name: "hub.example", at: now.Add(8 * 24 * time.Hour), hubSays: "expired"},
		"expired, to be renewed":     {agent: west, hub: hub, name: "hub.example", at: now.Add(8 * 24 * time.Hour), tolerance: Overdue},
		"expired for too long":       {agent: west, hub: hub, name: "hub.example", at: now.Add(60 * 24 * time.Hour), tolerance: Overdue, hubSays: "expired"},
		"a hub of another name":      {agent: west, hub: hub, name: "other.example", at: now, agentSays: "not other.example"},
		"a hub of another root":      {agent: west, hub: hubOf(t, other, "plane-1", "hub.example"), name: "hub.example", at: now, agentSays: "not trusted"},
		"a hub of another plane":     {agent: west, hub: hubOf(t, root, "plane-2", "hub.example"), name: "hub.example", at: now, agentSays: "plane-1.meshctl/hub"},
		"an agent that says it's it": {agent: west, hub: agentOf(t, root, "plane-1", "east"), name: "hub.example", at: now, agentSays: "hub.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, hubErr, agentErr := handshake(t, c.hub, AgentTLS(own(c.agent), c.name, "plane-1", clock), judge(west.Roots, c.at, c.tolerance))
			switch {
			case c.agentSays != "":
				require.ErrorContains(t, agentErr, c.agentSays)
			case c.hubSays != "":
				require.NoError(t, agentErr)
				require.ErrorContains(t, hubErr, c.hubSays)
			default:
				require.NoError(t, agentErr)
				require.NoError(t, hubErr)
				assert.Equal(t, "west", cluster)
			}
		})
	}
}

// TestATokenIsSentToTheHubOnly: who shows another root gets nothing.
func TestATokenIsSentToTheHubOnly(t *testing.T) {
	t.Parallel()
	root := newRoot(t, "plane-1")
	token, err := NewToken(rand.Reader, "plane-1", "west", root.Chain().Root())
	require.NoError(t, err)
	judge := func(tls.ConnectionState) (string, error) { return "", nil }
	_, _, err = handshake(t, hubOf(t, root, "plane-1", "hub.example"), EnrollTLS(token, "hub.example", clock), judge)
	require.NoError(t, err)
	_, _, err = handshake(t, hubOf(t, newRoot(t, "plane-1"), "plane-1", "hub.example"), EnrollTLS(token, "hub.example", clock), judge)
	require.ErrorContains(t, err, "is not the hub that the token is for")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	token, err := NewToken(rand.Reader, "plane-1", "west", newRoot(t, "plane-1").Chain().Root())
	require.NoError(t, err)
	read, err := ParseToken(" " + token.Text() + "\n")
	require.NoError(t, err)
	assert.Equal(t, token, read)
	assert.True(t, read.Is(token.Digest()))
	again, err := NewToken(rand.Reader, "plane-1", "west", newRoot(t, "plane-1").Chain().Root())
	require.NoError(t, err)
	assert.False(t, again.Is(token.Digest()))

	secret := strings.Split(token.Text(), ".")[4]
	for _, shown := range []string{fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s", token, token, token, &token)} {
		assert.NotContains(t, shown, secret)
		assert.Contains(t, shown, "west")
	}
	for _, wrong := range []string{"", "x", token.Text() + "x", token.Text()[1:], strings.ToUpper(token.Text()), "mr1.plane-1.west.a.b", strings.Replace(token.Text(), "west", "We", 1)} {
		_, err := ParseToken(wrong)
		require.Error(t, err, wrong)
		assert.NotContains(t, err.Error(), secret)
	}
	_, err = NewToken(rand.Reader, "plane-1", "a.b", newRoot(t, "plane-1").Chain().Root())
	require.ErrorContains(t, err, "a.b")
}

func FuzzParseToken(f *testing.F) {
	f.Add("mr1.plane.west.aaaa.bbbb")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err == nil && token.Text() != strings.TrimSpace(text) {
			t.Errorf("%q is %q", text, token.Text())
		}
	})
}

func TestWhenToRenew(t *testing.T) {
	t.Parallel()
	root := newRoot(t, "plane-1")
	cert := agentOf(t, root, "plane-1", "west").Chain[0]
	assert.Equal(t, now.Add(RenewAfter), RenewAt(cert))
	assert.Equal(t, now, IssuedAt(cert))
	hub := hubOf(t, root, "plane-1", "a.example").Chain[0]
	assert.False(t, HubDue(hub, "plane-1", now, "a.example"))
	assert.True(t, HubDue(hub, "plane-1", now, "a.example", "b.example"))
	assert.True(t, HubDue(hub, "plane-1", now.Add(21*24*time.Hour), "a.example"))
	assert.False(t, HubDue(cert, "plane-1", now, "a.example"), "of a user's own PKI")
}
