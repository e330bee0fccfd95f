package dashboard

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// TestAServerThatDoesNotRun is no matter of permissions.
func TestAServerThatDoesNotRun(t *testing.T) {
	t.Parallel()
	_, err := whyClustersUnread(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, "gloo-mesh")
	require.ErrorContains(t, err, "connection refused; check the context, the network and that the server runs")
	require.ErrorContains(t, err, "management cluster https://127.0.0.1:1")
}
