package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	kubediscoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestProxiesOfOSM: its sidecars have one listener for all that they send, and policies by network and by route.
func TestProxiesOfOSM(t *testing.T) {
	t.Parallel()
	const (
		caller  = "web.front.cluster.local"
		cluster = "shop/plain|8080"
		server  = "plain.shop.svc.cluster.local"
	)
	tls := func(kind string) string {
		return `"transportSocket": {"name": "tls", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.` + kind + `", "sni": "` + server + `", "commonTlsContext": {"alpnProtocols": ["osm"], "tlsCertificateSdsSecretConfigs": [{"name": "service-cert"}]}}}`
	}
	rules := func(name, principal string) string {
		return `"rules": {"action": "ALLOW", "policies": {"` + name + `": {"permissions": [{"any": true}], "principals": [{"authenticated": {"principalName": {"exact": "` + principal + `"}}}]}}}`
	}
	called := func(network, route string) string {
		filters := `{"name": "envoy.filters.network.rbac", "typedConfig": {` + typed + `network.rbac.v3.RBAC", ` + rules("shop/plain", network) + `}}, ` + fmt.Sprintf(reading, "rds-inbound.8080")
		text := strings.Replace(listener("0.0.0.0", 15003, "INBOUND", `"filterChainMatch": {"destinationPort": 8080, "transportProtocol": "tls", "serverNames": ["`+server+`"], "applicationProtocols": ["osm"]}, `+tls("DownstreamTlsContext")+`, `, filters), "0.0.0.0_15003", "inbound-listener", 1)
		routes := `{"name": "rds-inbound.8080", "virtualHosts": [{"name": "inbound", "domains": ["` + server + `"], "routes": [{"match": {"safeRegex": {"regex": ".*"}}, "route": {"cluster": "local"}, "typedPerFilterConfig": {"envoy.filters.http.rbac": {` +
			typed + `http.rbac.v3.RBACPerRoute", "rbac": {` + rules("rbac-for-route", route) + `}}}}]}]}`
		return configOf(text, routes, "", "")
	}
	outbound := func(match string) string {
		return strings.Replace(listener("0.0.0.0", 15001, "OUTBOUND", match, fmt.Sprintf(reading, "rds-outbound.80")), "0.0.0.0_15001", "outbound-listener", 1)
	}
	routes := `{"name": "rds-outbound.80", "virtualHosts": [{"name": "outbound", "domains": ["` + server + `"], "routes": [{"match": {"safeRegex": {"regex": ".*"}}, "route": {"weightedClusters": {"clusters": [{"name": "` + cluster + `", "weight": 100}]}}}]}]}`
	text, endpoints := eds(cluster, "10.1.1.2", 8080)
	text = strings.TrimSuffix(text, "}") + ", " + tls("UpstreamTlsContext") + "}"
	const toPort80 = `"filterChainMatch": {"destinationPort": 80, "prefixRanges": [{"addressPrefix": "10.96.0.1", "prefixLen": 32}]}, `
	for name, tt := range map[string]struct {
		outbound, called, reason string
		verdict                  explain.Verdict
		agrees                   bool
	}{
		"both let it in":          {outbound(toPort80), called(caller, caller), "lets it in, by policy shop/plain, rbac-for-route", explain.Allowed, true},
		"the network denies":      {outbound(toPort80), called("other.front.cluster.local", caller), "and none does: it has shop/plain", explain.Refused, false},
		"the route denies":        {outbound(toPort80), called(caller, "other.front.cluster.local"), "and none does: it has rbac-for-route", explain.Refused, false},
		"the callers know it not": {outbound(strings.Replace(toPort80, "80", "81", 1)), "", "it has no listener for requests to port 80", explain.Unreachable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := load(t, "osm-access")
			yes, name, number := true, "http", int32(8080)
			input.Clusters[0].EndpointSlices = []*kubediscoveryv1.EndpointSlice{{
				ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "plain-1", Labels: map[string]string{kubediscoveryv1.LabelServiceName: "plain"}},
				AddressType: kubediscoveryv1.AddressTypeIPv4, Ports: []kubediscoveryv1.EndpointPort{{Name: &name, Port: &number}},
				Endpoints: []kubediscoveryv1.Endpoint{{
					Addresses: []string{"10.1.1.2"}, Conditions: kubediscoveryv1.EndpointConditions{Ready: &yes}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "plain-0"},
				}},
			}}
			index := explain.New(engine.Translate(input))
			from, to := index.Find(snapshot.Workload, "web-front-cluster-1-statefulset"), index.Find(snapshot.Destination, "plain-shop-cluster-1")
			require.Len(t, from, 1)
			require.Len(t, to, 1)
			why := index.Why(from[0], to[0], explain.Request{})
			require.NotNil(t, why)
			require.Equal(t, explain.Allowed, why.Verdict, why.Reason)
			proxy := []string{"envoy"}
			explain.AddProxies(index, why, &toldProxies{
				pods: []explain.ProxyPod{
					{Cluster: "cluster-1", Namespace: "front", Name: "caller", Labels: map[string]string{"app": "web"}, Containers: proxy},
					{Cluster: "cluster-1", Namespace: "shop", Name: "called", Labels: map[string]string{"app": "plain"}, Containers: proxy, IPs: []string{"10.1.1.2"}},
				},
				configs: map[string]string{"caller": configOf(tt.outbound, routes, text, endpoints), "called": tt.called},
			})
			p := why.Proxies
			assert.Equal(t, tt.verdict, p.Verdict, p.Reason)
			assert.Contains(t, p.Reason, tt.reason)
			assert.Equal(t, tt.agrees, p.Agrees, "%+v", p.Differences)
		})
	}
}
