package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestParseSync(t *testing.T) {
	t.Parallel()
	// As Istio 1.31.1 writes it; ztunnels watch other types only.
	got, err := parseSync([]byte(`[
  {"cluster_id": "east", "proxy": "cart-1.shop", "proxy_type": "sidecar", "istio_version": "1.31.1",
   "cluster_sent": "a", "cluster_acked": "a", "listener_sent": "b", "listener_acked": "b", "route_sent": "c", "route_acked": "c", "endpoint_sent": "d", "endpoint_acked": "d",
   "resources": {"type.googleapis.com/envoy.config.route.v3.RouteConfiguration": {"sent": "c", "acked": "c", "sentTime": "2026-11-28T04:00:00Z", "lastError": "of an earlier one"}}},
  {"proxy": "web.v1.shop", "cluster_sent": "a", "cluster_acked": "a", "listener_sent": "b", "listener_acked": "a", "route_sent": "c",
   "resources": {"type.googleapis.com/envoy.config.listener.v3.Listener": {"sent": "b", "acked": "a", "lastError": "no such filter"}}},
  {"proxy": "ztunnel-1.istio-system"},
  {"proxy": "odd"}
]`))
	require.NoError(t, err)
	assert.Equal(t, []snapshot.SyncedProxy{
		{Namespace: "shop", Pod: "cart-1"},
		{Namespace: "shop", Pod: "web.v1", Waits: []string{"listeners", "routes"}, Refused: "no such filter"},
		{Namespace: "istio-system", Pod: "ztunnel-1"},
		{Pod: "odd"},
	}, got)
	_, err = parseSync([]byte("<html>"))
	assert.ErrorContains(t, err, "istiod: reading /debug/syncz")
}
