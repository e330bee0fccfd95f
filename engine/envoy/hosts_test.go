package envoy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/envoy"
)

// TestParseHosts: as Envoy answers to /clusters?format=json.
func TestParseHosts(t *testing.T) {
	t.Parallel()
	hosts, err := envoy.ParseHosts([]byte(`{"cluster_statuses": [
		{"name": "outbound|9080||reviews.bookinfo.svc.cluster-2.global", "host_statuses": [
			{"address": {"socket_address": {"address": "192.0.2.18", "port_value": 15443}},
			 "stats": [{"name": "cx_connect_fail"}, {"value": "7", "name": "cx_total"}, {"type": "GAUGE", "name": "cx_active", "value": "1"}],
			 "health_status": {"eds_health_status": "HEALTHY"}},
			{"address": {"socket_address": {"address": "2001:db8::1", "port_value": 15443}},
			 "stats": [{"name": "cx_connect_fail", "value": 3}, {"value": 3, "name": "cx_total"}],
			 "health_status": {"eds_health_status": "HEALTHY", "failed_outlier_check": true}}]},
		{"name": "prometheus_stats", "host_statuses": [{"address": {"pipe": {"path": "/x"}}}]},
		{"name": "empty"}]}`))
	require.NoError(t, err)
	assert.Equal(t, []envoy.Host{
		{Address: "192.0.2.18:15443", Connections: 7}, {Address: "[2001:db8::1]:15443", Connections: 3, Failed: 3, Excluded: true},
	}, hosts)
	for _, broken := range []string{``, `[]`, `{"cluster_statuses": 1}`} {
		_, err := envoy.ParseHosts([]byte(broken))
		require.ErrorContains(t, err, "what a proxy connects to", broken)
	}
	odd, err := envoy.ParseHosts([]byte(`{"cluster_statuses": [{"host_statuses": [{"address": {"socket_address": {"address": "a", "port_value": 1}}, "stats": [{"name": "cx_total", "value": "-1"}, {"name": "cx_connect_fail", "value": {}}]}]}]}`))
	require.NoError(t, err)
	assert.Equal(t, []envoy.Host{{Address: "a:1"}}, odd)
}
