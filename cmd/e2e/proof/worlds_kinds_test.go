package proof

import (
	"fmt"
	"strings"
)

// drawRarer draws kinds of which a world has seldom more than one.
func (w *drawnWorld) drawRarer(c *drawnCluster) []string {
	name := fmt.Sprintf("by-hand-%d", w.random.IntN(1_000_000))
	switch w.random.IntN(6) {
	case 0:
		return []string{w.object("networking.istio.io/v1", "ServiceEntry", name, w.one("shop", "front", "istio-system"), w.serviceEntry(c))}
	case 1:
		c.filters = true
		if w.in(30) {
			return []string{w.object("extensions.istio.io/v1alpha1", "WasmPlugin", name, w.one("shop", "front", "istio-system"), "{"+w.podSelector()+"url: \"file:///opt/filters/one.wasm\"}")}
		}
		return []string{w.object("networking.istio.io/v1alpha3", "EnvoyFilter", name, w.one("shop", "front", "istio-system"), w.envoyFilter())}
	case 2:
		return []string{w.object("gateway.networking.k8s.io/v1", "GRPCRoute", name, w.one("shop", "shop", "front"), w.grpcRoute())}
	case 3:
		return []string{w.object("gateway.networking.k8s.io/v1", w.one("TCPRoute", "TLSRoute"), name, w.one("shop", "front"), "{"+w.parent()+", hostnames: [cart.shop.svc.cluster.local], rules: [{backendRefs: [{group: \"\", kind: Service, name: ledger, namespace: shop, port: 9080, weight: 1}]}]}")}
	default:
		return []string{w.object("networking.istio.io/v1", "DestinationRule", name, w.one("shop", "front", "istio-system"), w.connections(c))}
	}
}

// drawMeshConfig draws settings of a mesh.
func (w *drawnWorld) drawMeshConfig() string {
	text := "trustDomain: cluster.local\ndefaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}}\n"
	for _, setting := range []string{"defaultServiceExportTo", "defaultVirtualServiceExportTo", "defaultDestinationRuleExportTo"} {
		if w.in(8) {
			text += setting + ": [\"" + w.one(".", "*", "~") + "\"]\n"
		}
	}
	if w.in(8) {
		text += "outboundTrafficPolicy: {mode: " + w.one("REGISTRY_ONLY", "ALLOW_ANY") + "}\n"
	}
	if w.in(4) {
		text += "enableAutoMtls: false\n"
	}
	if w.in(5) {
		text += "pathNormalization: {normalization: " + w.one("NONE", "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES") + "}\n"
	}
	return text
}

func (w *drawnWorld) serviceEntry(c *drawnCluster) string {
	host := w.one("cart.shop.svc.cluster.local", "cart.shop.svc."+c.other()+".global", catalog, catalog)
	ends := w.one("endpoints: [{address: 10.9.9.9}]", "workloadSelector: {labels: {app: cart}}", "workloadSelector: {labels: {app: ledger}}")
	return "{hosts: [" + host + "], ports: [{number: 9080, name: http, protocol: HTTP" + w.one("", ", targetPort: 8080") + "}], resolution: STATIC, location: " + w.one("MESH_INTERNAL", "MESH_EXTERNAL") + ", " + ends + w.exportTo() + "}"
}

// catalog is a host that no Service has.
const catalog = "catalog.example.com"

// other is the name of the other cluster.
func (c *drawnCluster) other() string {
	if c.name == "east" {
		return "west"
	}
	return "east"
}

// envoyFilter adds a filter that nobody evaluates.
func (w *drawnWorld) envoyFilter() string {
	selector := strings.Replace(w.podSelector(), "selector: {matchLabels", "workloadSelector: {labels", 1)
	return "{" + selector + "configPatches: [{applyTo: HTTP_FILTER, match: {context: " + w.one("SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "ANY", "GATEWAY") + ", listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}, " +
		"patch: {operation: INSERT_FIRST, value: {name: " + drawnFilter + ", typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, inlineCode: \"function envoy_on_request(handle) end\"}}}}]}"
}

// drawnFilter is the name of the filter that is drawn.
const drawnFilter = "drawn-filter"

func (w *drawnWorld) parent() string {
	port := w.one("", ", port: 9080", ", port: 80")
	return "parentRefs: [{group: \"\", kind: Service, name: " + w.one("cart", "ledger") + ", namespace: shop" + port + "}]"
}

// grpcRoute is for methods as the paths of requests have them.
func (w *drawnWorld) grpcRoute() string {
	match := w.one("", "matches: [{method: {type: Exact, service: a}}], ", "matches: [{method: {type: Exact, service: a, method: b.json}}], ", "matches: [{method: {type: Exact, method: b.json}, headers: [{type: Exact, name: x-team, value: one}]}], ", "matches: [{headers: [{type: Exact, name: x-team, value: one}]}], ")
	return "{" + w.parent() + ", rules: [{" + match + "backendRefs: [{group: \"\", kind: Service, name: " + w.one("cart", "ledger") + ", namespace: shop, port: 9080, weight: 1}]}]}"
}

// connections is a DestinationRule with TLS modes, down to ports and subsets.
func (w *drawnWorld) connections(c *drawnCluster) string {
	tls := func() string {
		return "tls: {mode: " + w.one("DISABLE", "ISTIO_MUTUAL", "ISTIO_MUTUAL", "SIMPLE") + "}"
	}
	var parts []string
	if w.in(50) {
		parts = append(parts, tls())
	}
	if w.in(50) {
		parts = append(parts, "portLevelSettings: [{port: {number: "+w.one("9080", "9080", "80")+"}, "+w.one(tls(), "connectionPool: {tcp: {maxConnections: 100}}")+"}]")
	}
	text := "{host: " + w.one("cart.shop.svc.cluster.local", "ledger.shop.svc.cluster.local", "\"*.shop.svc.cluster.local\"", "\"*.cluster.local\"", "cart.shop.svc."+c.other()+".global")
	if len(parts) > 0 {
		text += ", trafficPolicy: {" + strings.Join(parts, ", ") + "}"
	}
	if w.in(30) {
		text += ", subsets: [{name: one, labels: {version: v1}, trafficPolicy: {" + tls() + "}}]"
	}
	return text + w.exportTo() + "}"
}

// addMachine adds a WorkloadEntry that services may select.
func (w *drawnWorld) addMachine(c *drawnCluster, number int) {
	labels := map[string]string{"app": w.one("cart", "cart", "ledger"), "part-of": "shop"}
	text := "app: " + labels["app"] + ", part-of: shop"
	if w.in(40) {
		labels["version"] = "v1"
		text += ", version: v1"
	}
	if w.in(60) {
		labels["security.istio.io/tlsMode"] = "istio"
		text += ", security.istio.io/tlsMode: istio"
	}
	m := worldProxy{Name: "machine", Namespace: "shop", Account: "cart", Labels: labels, Address: fmt.Sprintf("10.%d.0.99", number), machine: true}
	c.pods = append(c.pods, m)
	c.byHand = append(c.byHand, w.object("networking.istio.io/v1", "WorkloadEntry", m.Name, m.Namespace, "{address: "+m.Address+", serviceAccount: cart, labels: {"+text+"}"+w.one("", ", ports: {http: 8081}")+"}"))
}
