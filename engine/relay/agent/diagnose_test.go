package agent

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// listen takes connections and answers with a text.
func listen(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// TestDiagnose: the first step that fails is the cause, and what the hub answers comes before all steps.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := closed.Addr().String()
	require.NoError(t, closed.Close())
	web := listen(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	gone := status.Error(codes.Unavailable, "connection error")
	cases := map[string]struct {
		hub  string
		err  error
		code snapshot.Code
		what string
		hint string
	}{
		"no address":   {"hub", gone, snapshot.RelayUnresolved, `"hub" is no HOST:PORT`, "--relay-server"},
		"no such name": {"hub.invalid:9900", gone, snapshot.RelayUnresolved, "DNS: ", "DNS of this cluster"},
		"nobody there": {nobody, gone, snapshot.RelayUnreachable, "TCP: ", "--relay-bind"},
		"no TLS":       {web, gone, snapshot.RelayNotTrusted, "TLS: ", "--relay-name"},
		"refused":      {nobody, status.Error(codes.Unauthenticated, "the certificate was revoked; make a token"), snapshot.RelayIdentity, "the certificate was revoked; make a token", ""},
		"not approved": {nobody, status.Error(codes.PermissionDenied, "no cluster is registered"), snapshot.RelayNotApproved, "no cluster is registered", ""},
		"two agents":   {nobody, status.Error(codes.AlreadyExists, "several agents speak for it"), snapshot.RelayIdentity, "several agents speak for it", ""},
		"too old":      {nobody, status.Error(codes.FailedPrecondition, "versions"), snapshot.RelayVersion, "versions", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := New(Options{Cluster: "west", Config: &rest.Config{Host: "https://127.0.0.1:1"}, Hub: c.hub, TLS: func() *tls.Config {
				return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "hub"}
			}})
			require.NoError(t, err)
			assert.Equal(t, "the hub "+c.hub+" is not connected yet", a.Unready())
			got := a.diagnose(t.Context(), c.err)
			assert.Equal(t, c.code, got.Code)
			assert.Contains(t, got.What, c.what)
			assert.Contains(t, got.Hint, c.hint)
			a.contact.set(got)
			assert.Equal(t, "the hub "+c.hub+" is not connected: "+got.String(), a.Unready())
			a.enforcer.known = true
			assert.Empty(t, a.Unready(), "it has what is to stand")
		})
	}
}
