package kube_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// Whoever has a client of all groups can use what takes a Clientset.
var _ kube.Clientset = kubernetes.Interface(nil)

// TestClientset asks each client for something, and looks where the request arrives.
func TestClientset(t *testing.T) {
	t.Parallel()
	type request struct{ path, agent string }
	got := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- request{r.URL.Path, r.UserAgent()}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: 1000}
	clients, err := kube.NewClientset(config)
	require.NoError(t, err)
	for want, client := range map[string]rest.Interface{
		"/api/v1/x": clients.CoreV1().RESTClient(),
		"/apis/admissionregistration.k8s.io/v1/x": clients.AdmissionregistrationV1().RESTClient(),
		"/apis/apps/v1/x":                         clients.AppsV1().RESTClient(),
		"/apis/authentication.k8s.io/v1/x":        clients.AuthenticationV1().RESTClient(),
		"/apis/authorization.k8s.io/v1/x":         clients.AuthorizationV1().RESTClient(),
		"/apis/coordination.k8s.io/v1/x":          clients.CoordinationV1().RESTClient(),
		"/apis/events.k8s.io/v1/x":                clients.EventsV1().RESTClient(),
		"/apis/rbac.authorization.k8s.io/v1/x":    clients.RbacV1().RESTClient(),
		"/x":                                      clients.Discovery().RESTClient(),
	} {
		require.Error(t, client.Get().Resource("x").Do(t.Context()).Error())
		seen := <-got
		assert.Equal(t, want, seen.path)
		assert.Equal(t, rest.DefaultKubernetesUserAgent(), seen.agent)
		assert.Same(t, clients.CoreV1().RESTClient().GetRateLimiter(), client.GetRateLimiter(), "all clients together keep the limit")
	}
	assert.Empty(t, config.UserAgent, "the configuration stays as it was")
}

func TestClientsetSaysWhichServer(t *testing.T) {
	t.Parallel()
	_, err := kube.NewClientset(&rest.Config{Host: "https://one.example", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}})
	require.ErrorContains(t, err, "connection settings for https://one.example: ")
}
