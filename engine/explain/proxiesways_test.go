package explain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// toldProxies hold configurations that a test wrote, by pod.
type toldProxies struct {
	pods    []explain.ProxyPod
	configs map[string]string
}

func (p *toldProxies) Pods(cluster, namespace string, labels map[string]string) (out []explain.ProxyPod, err error) {
	for _, pod := range p.pods {
		matches := pod.Cluster == cluster && pod.Namespace == namespace
		for key, value := range labels {
			matches = matches && pod.Labels[key] == value
		}
		if matches {
			out = append(out, pod)
		}
	}
	return out, nil
}

func (p *toldProxies) Config(pod explain.ProxyPod, _ uint32) (*envoy.Config, error) {
	text, found := p.configs[pod.Name]
	if !found {
		return nil, errors.New("pod " + pod.String() + " has no configuration")
	}
	return envoy.Parse([]byte(text))
}

func (p *toldProxies) Patches(explain.ProxyPod, snapshot.ProxyPatch, string) ([]string, error) {
	return nil, nil
}

// Parts of configurations, in the format of protojson.
const (
	typed   = `"@type": "type.googleapis.com/envoy.extensions.filters.`
	passing = `{"name": "tcp", "typedConfig": {` + typed + `network.tcp_proxy.v3.TcpProxy", "cluster": %q}}`
	reading = `{"name": "hcm", "typedConfig": {` + typed + `network.http_connection_manager.v3.HttpConnectionManager", "rds": {"routeConfigName": %q}}}`
	denying = `{"name": "rbac", "typedConfig": {` + typed + `network.rbac.v3.RBAC", "rules": {"action": "DENY", "policies": {"ns[shop]-policy[nobody]-rule[0]": {"permissions": [{"any": true}], "principals": [{"any": true}]}}}}}`
)

func listener(address string, port int, direction, match, filters string) string {
	return fmt.Sprintf(`{"name": "%s_%d", "trafficDirection": %q, "address": {"socketAddress": {"address": %q, "portValue": %d}}, "filterChains": [{%s"filters": [%s]}]}`, address, port, direction, address, port, match, filters)
}

func eds(cluster, address string, port int) (clusters, endpoints string) {
	return fmt.Sprintf(`{"name": %q, "type": "EDS"}`, cluster),
		fmt.Sprintf(`{"clusterName": %q, "endpoints": [{"lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": %q, "portValue": %d}}}}]}]}`, cluster, address, port)
}

func configOf(listeners, routes string, clusters ...string) string {
	return fmt.Sprintf(`{"listeners": [%s], "routes": [%s], "clusters": [%s], "endpoints": [%s]}`, listeners, routes, clusters[0], clusters[1])
}

// answeredAtListeners asks about a request in a world with listeners of the Gateway API, with the proxies of one pod of the callers and of
// one that is called.
func answeredAtListeners(t *testing.T, caller, called string, headers map[string]string, callerHolds, calledHolds string) *explain.Why {
	t.Helper()
	input, _, err := offline.Load(offline.Dir("../../testdata/world/gateway-api-listeners/in"))
	require.NoError(t, err)
	index := explain.New(engine.Translate(input))
	from, to := index.Find(snapshot.Workload, caller), index.Find(snapshot.Destination, called)
	require.Len(t, from, 1)
	require.Len(t, to, 1)
	why := index.Why(from[0], to[0], explain.Request{Headers: headers})
	require.NotNil(t, why)
	proxy := []string{"istio-proxy"}
	explain.AddProxies(index, why, &toldProxies{
		pods: []explain.ProxyPod{
			{Cluster: "cluster-1", Namespace: "front", Name: "caller", Labels: map[string]string{"app": "web"}, Containers: proxy},
			{Cluster: "cluster-1", Namespace: "front", Name: "caller", Labels: map[string]string{"gateway.networking.k8s.io/gateway-name": "edge"}, Containers: proxy, Gateway: true},
			{Cluster: "cluster-1", Namespace: "shop", Name: "called", Labels: map[string]string{"app": "cart", "version": "v2"}, Containers: proxy, IPs: []string{"10.1.1.2"}},
		},
		configs: map[string]string{"caller": callerHolds, "called": calledHolds},
	})
	return why
}

// TestProxiesOfConnectionsAndGateways asks proxies for connections, and for what enters through gateways.
func TestProxiesOfConnectionsAndGateways(t *testing.T) {
	t.Parallel()
	const store, cart = "outbound|5432||store.shop.svc.cluster.local", "outbound|9080||cart.shop.svc.cluster.local"
	inbound := func(filters string) string {
		return configOf(strings.Replace(listener("0.0.0.0", 15006, "INBOUND", "", filters), "0.0.0.0_15006", "virtualInbound", 1), "", "", "")
	}
	toStore, storeAt := eds(store, "10.1.1.2", 9080)
	toCart, cartAt := eds(cart, "10.1.1.2", 9080)
	sends := fmt.Sprintf(passing, store)
	host := func(name, cluster string) string {
		return fmt.Sprintf(`{"name": "http.80", "virtualHosts": [{"name": %q, "domains": [%q], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": %q}}]}]}`, name, name, cluster)
	}
	atPort80 := listener("0.0.0.0", 80, "OUTBOUND", "", fmt.Sprintf(reading, "http.80"))
	for name, tt := range map[string]struct {
		from, to        string
		headers         map[string]string
		caller, called  string
		verdict         explain.Verdict
		reason, differs string
	}{
		"a connection": {
			"web-front-cluster-1-statefulset", "store-shop-cluster-1", nil,
			configOf(listener("10.96.0.56", 5432, "OUTBOUND", "", sends), "", toStore, storeAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Allowed, "", "",
		},
		"a connection to another address": {
			"web-front-cluster-1-statefulset", "store-shop-cluster-1", nil,
			configOf(listener("10.96.0.57", 5432, "OUTBOUND", "", sends), "", toStore, storeAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Unreachable, "the proxy of the caller sends nothing on: it has no listener for connections to port 5432", "verdict",
		},
		"one of a listener for all addresses, by its address": {
			"web-front-cluster-1-statefulset", "store-shop-cluster-1", nil,
			configOf(listener("0.0.0.0", 5432, "OUTBOUND", `"filterChainMatch": {"prefixRanges": [{"addressPrefix": "10.96.0.56", "prefixLen": 32}]}, `, sends), "", toStore, storeAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Allowed, "", "",
		},
		"one that the pods deny": {
			"web-front-cluster-1-statefulset", "store-shop-cluster-1", nil,
			configOf(listener("10.96.0.56", 5432, "OUTBOUND", "", sends), "", toStore, storeAt), inbound(denying + ", " + fmt.Sprintf(passing, "inbound")),
			explain.Refused, "policy ns[shop]-policy[nobody]-rule[0] denies it", "access",
		},
		"one that the pods read as requests": {
			"web-front-cluster-1-statefulset", "store-shop-cluster-1", nil,
			configOf(listener("10.96.0.56", 5432, "OUTBOUND", "", sends), "", toStore, storeAt), inbound(fmt.Sprintf(reading, "inbound")),
			explain.Unknown, "reads connections as requests of HTTP", "",
		},
		"requests that enter": {
			"edge-istio-front-cluster-1-daemonset", "cart-shop-cluster-1", map[string]string{"host": "www.example"},
			configOf(atPort80, host("www.example", cart), toCart, cartAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Allowed, "", "",
		},
		"requests by a name that the gateway has not": {
			"edge-istio-front-cluster-1-daemonset", "cart-shop-cluster-1", map[string]string{"host": "www.example"},
			configOf(atPort80, host("other.example", cart), toCart, cartAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Unreachable, "no virtual host of routes http.80 is for www.example (status 404)", "verdict",
		},
		"requests that go elsewhere": {
			"edge-istio-front-cluster-1-daemonset", "cart-shop-cluster-1", map[string]string{"host": "www.example"},
			configOf(atPort80, host("www.example", store), toStore, storeAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Allowed, "", "route",
		},
		"requests that the gateway refuses": {
			"edge-istio-front-cluster-1-daemonset", "cart-shop-cluster-1", map[string]string{"host": "www.example"},
			configOf(listener("0.0.0.0", 80, "OUTBOUND", "", denying+", "+fmt.Sprintf(reading, "http.80")), host("www.example", cart), toCart, cartAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Refused, "the proxy of the caller refuses it: rbac, policy ns[shop]-policy[nobody]-rule[0]", "verdict",
		},
		"requests of an unknown name": {
			"edge-istio-front-cluster-1-daemonset", "cart-shop-cluster-1", nil,
			configOf(atPort80, host("www.example", cart), toCart, cartAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Unknown, "ask with the header host as NAME:PORT", "",
		},
		"connections that enter": {
			"edge-istio-front-cluster-1-daemonset", "store-shop-cluster-1", map[string]string{"host": "any:5432"},
			configOf(listener("0.0.0.0", 5432, "OUTBOUND", "", sends), "", toStore, storeAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Allowed, "", "",
		},
		"TLS that is passed on": {
			"edge-istio-front-cluster-1-daemonset", "store-shop-cluster-1", map[string]string{"host": "db.sni.example"},
			configOf(listener("0.0.0.0", 9443, "OUTBOUND", `"filterChainMatch": {"serverNames": ["db.sni.example"]}, `, sends), "", toStore, storeAt), inbound(fmt.Sprintf(passing, "inbound")),
			explain.Allowed, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := answeredAtListeners(t, tt.from, tt.to, tt.headers, tt.caller, tt.called)
			p := why.Proxies
			assert.Equal(t, tt.verdict, p.Verdict, p.Reason)
			assert.Contains(t, p.Reason, tt.reason)
			assert.Equal(t, tt.differs == "", p.Agrees, "%+v", p.Differences)
			if tt.differs != "" && len(p.Differences) > 0 {
				assert.Equal(t, tt.differs, p.Differences[0].What, "%+v", p.Differences)
			}
			wellFormed(t, why)
		})
	}
}
