package cluster_test

import (
	"bufio"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
)

// TestPortForwardThroughTheClient: streams to pods go over the transport of the client, with its authority, its token and its checks.
func TestPortForwardThroughTheClient(t *testing.T) {
	t.Parallel()
	var token, port atomic.Pointer[string]
	page := func(stream httpstream.Stream, _ <-chan struct{}) error {
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			return nil
		}
		to := stream.Headers().Get(corev1.PortHeader)
		port.Store(&to)
		go func() {
			defer func() { _ = stream.Reset() }()
			request, err := http.ReadRequest(bufio.NewReader(stream))
			if err == nil {
				_, _ = io.WriteString(stream, "HTTP/1.1 200 OK\r\nContent-Length: "+"4\r\n\r\n"+request.URL.Path[:4])
			}
			_ = stream.Close()
			_, _ = io.Copy(io.Discard, stream)
		}()
		return nil
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		token.Store(&sent)
		switch r.URL.Path {
		case "/api/v1/namespaces/shop/pods/cart/portforward":
			if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
				return
			}
			connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, page)
			if connection != nil {
				<-connection.CloseChan()
			}
		case "/api/v1/namespaces/shop/pods/away/portforward":
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		default:
			http.Error(w, "pods is forbidden", http.StatusForbidden)
		}
	}))
	server.EnableHTTP2 = true // as API servers have it
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := cluster.NewClient(&cluster.Credential{
		Server: server.URL, Token: "secret",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, "test")
	require.NoError(t, err)
	t.Cleanup(client.Close)

	data, err := kube.GetFromPod(t.Context(), client.Config, "shop", "cart", 15090, "stats", 100)
	require.NoError(t, err)
	assert.Equal(t, "/sta", string(data))
	assert.Equal(t, "Bearer secret", *token.Load())
	assert.Equal(t, "15090", *port.Load())
	_, err = kube.GetFromPod(t.Context(), client.Config, "shop", "other", 15090, "stats", 100)
	require.ErrorContains(t, err, "403 Forbidden: pods is forbidden")
	_, err = kube.GetFromPod(t.Context(), client.Config, "shop", "away", 15090, "stats", 100)
	require.ErrorContains(t, err, "redirects to")
	assert.NotContains(t, err.Error(), "secret")

	stranger, err := cluster.NewClient(&cluster.Credential{Server: server.URL, Token: "secret"}, "test")
	require.NoError(t, err)
	token.Store(nil)
	_, err = kube.GetFromPod(t.Context(), stranger.Config, "shop", "cart", 15090, "stats", 100)
	require.ErrorContains(t, err, "certificate")
	assert.Nil(t, token.Load(), "a server of another authority gets no token")
}
