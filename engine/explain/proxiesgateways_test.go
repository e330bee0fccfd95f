package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestProxiesOfLimitedGateways: each gateway ends a TLS session, and what comes next sees the gateway.
func TestProxiesOfLimitedGateways(t *testing.T) {
	t.Parallel()
	const (
		host, sni    = "cart.shop.svc.cluster-2.global", "p9080.cart.shop.svc.cluster-2.global"
		direct, next = "outbound|9080||" + host, "outbound|9080||cart.shop.svc.cluster-2.relayed.global"
		caller, gw1  = "spiffe://cluster.local/ns/shop/sa/cart", "spiffe://virtual-mesh.gloo-mesh.virtualmesh/ns/istio-system/sa/istiod-istio-system-cluster-1"
		gw2          = "spiffe://cluster.local/ns/istio-system/sa/istio-eastwestgateway"
	)
	withTLS := func(cluster, address string, port int) []string {
		text, endpoints := eds(cluster, address, port)
		socket := `, "transportSocket": {"name": "tls", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "` + sni + `", "commonTlsContext": {"alpnProtocols": ["istio"], "tlsCertificateSdsSecretConfigs": [{"name": "default"}]}}}}`
		return []string{strings.TrimSuffix(text, "}") + socket, endpoints}
	}
	allowing := func(principal string) string {
		return `{"name": "rbac", "typedConfig": {` + typed + `network.rbac.v3.RBAC", "rules": {"action": "ALLOW", "policies": {"ns[istio-system]-policy[only]-rule[0]": {"permissions": [{"any": true}], "principals": [{"authenticated": {"principalName": {"exact": "` + principal + `"}}}]}}}}}, `
	}
	// It denies callers by the name that they ask for, but for one of them.
	denyingOthers := func(principal string) string {
		return `{"name": "rbac", "typedConfig": {` + typed + `network.rbac.v3.RBAC", "rules": {"action": "DENY", "policies": {"ns[istio-system]-policy[named]-rule[0]": {"permissions": [{"requestedServerName": {"suffix": ".` + host + `"}}], "principals": [{"notId": {"authenticated": {"principalName": {"exact": "` + principal + `"}}}}]}}}}}, `
	}
	ends := `, "transportSocket": {"name": "tls", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"}}}]}`
	gateway := func(filters, cluster string) string {
		text := listener("0.0.0.0", 15443, "OUTBOUND", `"filterChainMatch": {"serverNames": ["`+sni+`"]}, `, filters+fmt.Sprintf(passing, cluster))
		return strings.TrimSuffix(text, "}]}") + ends
	}
	inbound := func(filters string) string {
		text := strings.Replace(listener("0.0.0.0", 15006, "INBOUND", "", filters+fmt.Sprintf(passing, "inbound")), "0.0.0.0_15006", "virtualInbound", 1)
		return configOf(strings.TrimSuffix(text, "}]}")+ends, "", "", "")
	}
	for name, tt := range map[string]struct {
		first, second, pod string
		verdict            explain.Verdict
		reason             string
	}{
		"each sees who comes":         {denyingOthers(caller), allowing(gw1), allowing(gw2), explain.Allowed, "lets it in"},
		"the callers' gateway denies": {denyingOthers("spiffe://cluster.local/ns/front/sa/web"), "", "", explain.Refused, "gateway pod cluster-1/istio-system/gw1 refuses the connection: policy ns[istio-system]-policy[named]-rule[0]"},
		"the other gateway denies":    {"", allowing(caller), "", explain.Refused, "gateway pod cluster-2/istio-system/gw2 refuses the connection"},
		"the pods deny":               {"", "", allowing(gw1), explain.Refused, "pod cluster-2/shop/called lets in only what a policy allows, and none does"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input, _, err := offline.Load(offline.Dir("../../testdata/world/limited-gateways/in"))
			require.NoError(t, err)
			index := explain.New(engine.Translate(input))
			from, to := index.Find(snapshot.Workload, "cart-v1-shop-cluster-1-statefulset"), index.Find(snapshot.Destination, "cart-shop-cluster-2")
			require.Len(t, from, 1)
			require.Len(t, to, 1)
			why := index.Why(from[0], to[0], explain.Request{})
			require.NotNil(t, why)
			proxy, labels := []string{"istio-proxy"}, map[string]string{"app": "istio-eastwestgateway", "istio": "eastwestgateway"}
			routes := `{"name": "9080", "virtualHosts": [{"name": "cart", "domains": ["` + host + `"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "` + direct + `"}}]}]}`
			explain.AddProxies(index, why, &toldProxies{
				pods: []explain.ProxyPod{
					{Cluster: "cluster-1", Namespace: "shop", Name: "caller", Labels: map[string]string{"app": "cart", "version": "v1"}, Containers: proxy},
					{Cluster: "cluster-1", Namespace: "istio-system", Name: "gw1", Labels: labels, Containers: proxy, Gateway: true, IPs: []string{"10.1.0.1"}},
					{Cluster: "cluster-2", Namespace: "istio-system", Name: "gw2", Labels: labels, Containers: proxy, Gateway: true, IPs: []string{"10.2.0.1"}},
					{Cluster: "cluster-2", Namespace: "shop", Name: "called", Labels: map[string]string{"app": "cart", "version": "v1"}, Containers: proxy, IPs: []string{"10.2.1.1"}},
				},
				configs: map[string]string{
					"caller": configOf(listener("0.0.0.0", 9080, "OUTBOUND", "", fmt.Sprintf(reading, "9080")), routes, withTLS(direct, "10.1.0.1", 15443)...),
					"gw1":    configOf(gateway(tt.first, next), "", withTLS(next, "172.18.0.102", 15443)...),
					"gw2":    configOf(gateway(tt.second, direct), "", withTLS(direct, "10.2.1.1", 9080)...),
					"called": inbound(tt.pod),
				},
			})
			p := why.Proxies
			assert.Equal(t, tt.verdict, p.Verdict, p.Reason)
			assert.Contains(t, p.Reason, tt.reason)
			assert.True(t, p.Agrees, "the objects do not know: %+v", p.Differences)
		})
	}
}
