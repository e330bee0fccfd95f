package cluster_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"github.com/meshctl/meshctl/engine/cluster"
)

// TestTokensFollowNoRedirect: a token goes to the server of its cluster only.
func TestTokensFollowNoRedirect(t *testing.T) {
	t.Parallel()
	var caught atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught.Store(true) }))
	t.Cleanup(other.Close)
	var token atomic.Pointer[string]
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		token.Store(&sent)
		switch r.URL.Path {
		case "/version":
			http.Redirect(w, r, other.URL+"/version", http.StatusTemporaryRedirect)
		case "/healthz":
			http.Redirect(w, r, "/livez", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	client, err := cluster.NewClient(&cluster.Credential{
		Server: server.URL, Token: "secret",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, "test")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	clientset, err := kubernetes.NewForConfig(client.Config)
	require.NoError(t, err)

	_, err = clientset.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context())
	require.ErrorContains(t, err, "redirects to "+other.URL)
	assert.NotContains(t, err.Error(), "secret")
	assert.False(t, caught.Load(), "the other server was asked")
	_, err = clientset.Discovery().RESTClient().Get().AbsPath("/healthz").DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer secret", *token.Load())
}
