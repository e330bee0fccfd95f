package proof

import (
	"fmt"
	"strings"
)

// drawByHand draws what a user may have written: one object, or two that belong together.
func (w *drawnWorld) drawByHand(c *drawnCluster) []string {
	name := fmt.Sprintf("by-hand-%d", w.random.IntN(1_000_000))
	switch w.random.IntN(14) {
	case 10, 11, 12, 13:
		return w.drawRarer(c)
	case 8:
		return []string{w.object("gateway.networking.k8s.io/v1", "HTTPRoute", name, w.one("shop", "shop", "front"), w.httpRoute())}
	case 9:
		return []string{w.object("security.istio.io/v1", "RequestAuthentication", name, w.one("shop", "istio-system"), "{"+w.podSelector()+"jwtRules: [{issuer: someone, jwks: '{\"keys\": []}'}]}")}
	case 0, 1, 2:
		return []string{w.object("security.istio.io/v1", "AuthorizationPolicy", name, w.one("shop", "shop", "istio-system", "front"), w.authorization())}
	case 3:
		return []string{w.object("security.istio.io/v1", "PeerAuthentication", name, w.one("shop", "istio-system"), w.peerAuthentication())}
	case 4:
		return []string{w.object("networking.istio.io/v1", "Sidecar", name, w.one("front", "shop", "istio-system"), w.sidecar())}
	case 5:
		return []string{w.object("networking.istio.io/v1", "DestinationRule", name, w.one("shop", "front", "istio-system"), w.destinationRule())}
	default:
		rule := w.object("networking.istio.io/v1", "DestinationRule", name, "shop", "{host: cart.shop.svc.cluster.local, subsets: [{name: one, labels: {version: v1}}, {name: two, labels: {version: v2}}]}")
		route := w.object("networking.istio.io/v1", "VirtualService", name, w.one("shop", "front", "istio-system"), w.virtualService(c))
		if w.in(50) {
			return []string{route}
		}
		return []string{rule, route}
	}
}

// object is one that is older or younger than what is generated.
func (w *drawnWorld) object(version, kind, name, namespace, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s, creationTimestamp: \"%s-01-01T00:00:00Z\"}\nspec: %s", version, kind, name, namespace, w.one("2025", "2027"), spec)
}

func (w *drawnWorld) podSelector() string {
	return w.one("", "", "selector: {matchLabels: {app: cart}}, ", "selector: {matchLabels: {version: v1}}, ", "selector: {matchLabels: {part-of: shop}}, ", "selector: {matchLabels: {app: web}}, ")
}

func (w *drawnWorld) authorization() string {
	var rules []string
	for range w.random.IntN(3) {
		var parts []string
		if w.in(70) {
			parts = append(parts, "from: [{source: {"+w.one(
				"principals: [cluster.local/ns/front/sa/web]", "principals: [\"*/sa/worker\"]", "principals: [\"*\"]", "namespaces: [front]", "namespaces: [\"sh*\"]",
				"notPrincipals: [cluster.local/ns/front/sa/web]", "notNamespaces: [shop]", "principals: [\"*\"], notNamespaces: [front]",
			)+"}}]")
		}
		if w.in(50) {
			parts = append(parts, "to: [{operation: {"+w.one("methods: [GET]", "notMethods: [GET]", "paths: [/a*]", "paths: [\"*.json\"]", "ports: [\"8080\"]", "ports: [\"9080\"]", "methods: [POST], paths: [/b]", "notPaths: [/a]")+"}}]")
		}
		if w.in(20) {
			parts = append(parts, "when: [{key: "+w.one(`"request.headers[x-team]", values: [one]`, `source.namespace, values: [front]`, `destination.port, values: ["8080"]`, `"request.headers[x-team]", notValues: [two]`)+"}]")
		}
		rules = append(rules, "{"+strings.Join(parts, ", ")+"}")
	}
	if len(rules) == 0 {
		return "{" + w.podSelector() + "action: ALLOW}" // without rules, istiod takes no other action
	}
	return "{" + w.podSelector() + "action: " + w.one("ALLOW", "ALLOW", "DENY", "AUDIT") + ", rules: [" + strings.Join(rules, ", ") + "]}"
}

func (w *drawnWorld) peerAuthentication() string {
	selector, ports := w.podSelector(), ""
	if selector != "" && w.in(50) {
		ports = ", portLevelMtls: {" + w.one("8080", "9080") + ": {mode: " + w.one("DISABLE", "STRICT", "PERMISSIVE") + "}}"
	}
	return "{" + selector + "mtls: {mode: " + w.one("STRICT", "PERMISSIVE", "DISABLE", "UNSET") + "}" + ports + "}"
}

func (w *drawnWorld) sidecar() string {
	selector := w.one("", "", "workloadSelector: {labels: {app: web}}, ", "workloadSelector: {labels: {app: worker}}, ")
	var egress []string
	if w.in(25) {
		egress = append(egress, "{port: {number: "+w.one("9080", "80")+", protocol: HTTP, name: http}, hosts: ["+w.egressHosts()+"]}")
	}
	if len(egress) == 0 || w.in(50) {
		egress = append(egress, "{hosts: ["+w.egressHosts()+"]}") // one without a port is the last one
	}
	outbound := ""
	if w.in(10) {
		outbound = ", outboundTrafficPolicy: {mode: " + w.one("REGISTRY_ONLY", "ALLOW_ANY") + "}"
	}
	ingress := ""
	if w.in(20) {
		ingress = ", ingress: [{port: {number: " + w.one("8080", "8090") + ", protocol: " + w.one("HTTP", "TCP") + ", name: in}" + w.one("", ", defaultEndpoint: \"127.0.0.1:8080\"") + "}]"
		selector = w.one("", "workloadSelector: {labels: {app: cart}}, ", "workloadSelector: {labels: {app: ledger}}, ")
	}
	return "{" + selector + "egress: [" + strings.Join(egress, ", ") + "]" + ingress + outbound + "}"
}

func (w *drawnWorld) egressHosts() string {
	return w.one(`"./*"`, `"*/*"`, `"shop/*"`, `"istio-system/*"`, `"./*", "istio-system/*"`, `"*/cart.shop.svc.cluster.local"`, `"shop/cart.shop.svc.cluster.local", "*/cart.shop.svc.east.global"`, `"~/*"`,
		`"*/*", "~shop/ledger.shop.svc.cluster.local"`, `"*/*", "~/cart.shop.svc.cluster.local"`, `"shop/*", "~istio-system/*"`, `"*/*", "~*/*.global"`)
}

func (w *drawnWorld) exportTo() string {
	if w.in(70) {
		return ""
	}
	return ", exportTo: [\"" + w.one(".", "*", "front", "shop") + "\"]"
}

func (w *drawnWorld) destinationRule() string {
	return "{host: " + w.one("cart.shop.svc.cluster.local", "\"*.shop.svc.cluster.local\"", "cart") + ", " +
		w.one("trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}}", "subsets: [{name: one, labels: {version: v1}}]") + w.exportTo() + "}"
}

func (w *drawnWorld) virtualService(c *drawnCluster) string {
	hosts := []string{"cart.shop.svc.cluster.local", "ledger.shop.svc.cluster.local", "cart.shop.svc." + c.other() + ".global"}
	host := w.one(append(hosts, hosts[0], "\"*.shop.svc.cluster.local\"", w.one("\"*.cluster.local\"", "\"*.global\"", "cart.shop.svc.cluster.local, ledger.shop.svc.cluster.local"))...)
	var routes []string
	for range 1 + w.random.IntN(2) {
		match := w.one("", "", "match: [{uri: {prefix: /a}}], ", "match: [{method: {exact: POST}}], ", "match: [{headers: {x-team: {exact: one}}}], ", "match: [{uri: {exact: /b}}, {uri: {prefix: /c}}], ", "match: [{sourceLabels: {app: web}}], ")
		extra := w.one("", "", "", "timeout: 3s, ", "headers: {request: {set: {x-team: one}}}, ", "fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, ", "rewrite: {uri: /a}, ")
		to := w.one("{destination: {host: "+w.one(append(hosts, catalog)...)+"}}", "{destination: {host: cart.shop.svc.cluster.local, subset: one}}",
			"{destination: {host: cart.shop.svc.cluster.local, subset: one}, weight: 30}, {destination: {host: ledger.shop.svc.cluster.local}, weight: 70}")
		routes = append(routes, "{"+match+extra+"route: ["+to+"]}")
	}
	return "{hosts: [" + host + "], http: [" + strings.Join(routes, ", ") + "]" + w.exportTo() + "}"
}

// httpRoute has all fields that an API server would set.
func (w *drawnWorld) httpRoute() string {
	var rules []string
	for range 1 + w.random.IntN(2) {
		match := w.one("{type: PathPrefix, value: /}}", "{type: PathPrefix, value: /a}}", "{type: PathPrefix, value: /}, method: POST}", "{type: PathPrefix, value: /}, headers: [{type: Exact, name: x-team, value: one}]}", "{type: Exact, value: /b}}, {path: {type: PathPrefix, value: /c}}")
		extra := w.one("", "", "timeouts: {request: 3s}, ", "filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-team, value: one}]}}], ")
		backend := func(name string, weight int) string {
			return fmt.Sprintf("{group: \"\", kind: Service, name: %s, namespace: shop, port: 9080, weight: %d}", name, weight)
		}
		to := w.one(backend("cart", 1), backend("ledger", 1), backend("cart", 20)+", "+backend("ledger", 80))
		rules = append(rules, "{matches: [{path: "+match+"], "+extra+"backendRefs: ["+to+"]}")
	}
	return "{" + w.parent() + ", rules: [" + strings.Join(rules, ", ") + "]}"
}

// drawPolicies draws a VirtualMesh and policies.
func (w *drawnWorld) drawPolicies() {
	access := w.one("DISABLED", "DISABLED", "ENABLED", "MESH_DEFAULT")
	mode := w.one("ALL", "ALL", "DECLARED")
	w.management = append(w.management, fmt.Sprintf(`apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: both, namespace: gloo-mesh, generation: 1, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  meshes: [{name: istiod-istio-system-east, namespace: gloo-mesh}, {name: istiod-istio-system-west, namespace: gloo-mesh}]
  federation: {selectors: [{}], mode: %s}
  globalAccessPolicy: %s`, mode, access))
	if mode == "DECLARED" && w.in(70) {
		w.management = append(w.management, fmt.Sprintf(`apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: ServiceDependency
metadata: {name: drawn, namespace: gloo-mesh, generation: 1}
spec:
  sourceSelectors: [%s]
  destinationSelectors: [%s]`,
			w.one("{}", "{kubeWorkloadMatcher: {clusters: [east]}}", "{kubeWorkloadMatcher: {namespaces: [front]}}"),
			w.one("{kubeServiceMatcher: {}}", "{kubeServiceMatcher: {namespaces: [shop]}}",
				"{kubeServiceRefs: {services: [{name: cart, namespace: shop, clusterName: west}, {name: ledger, namespace: shop, clusterName: east}]}}")))
	}
	if w.in(10) {
		w.management = append(w.management, "apiVersion: settings.mesh.gloo.solo.io/v1\nkind: Settings\nmetadata: {name: settings, namespace: gloo-mesh, generation: 1}\nspec: {mtls: {istio: {tlsMode: "+w.one("DISABLE", "ISTIO_MUTUAL")+"}}}")
	}
	for i := range w.random.IntN(3) {
		w.policy("TrafficPolicy", i, w.traffic())
	}
	for i := range w.random.IntN(3) {
		w.policy("AccessPolicy", i, w.accessPolicy())
	}
}

func (w *drawnWorld) policy(kind string, i int, spec string) {
	w.management = append(w.management, fmt.Sprintf("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: %s\nmetadata: {name: drawn-%d, namespace: gloo-mesh, generation: 1, creationTimestamp: \"2026-01-0%dT00:00:00Z\"}\nspec: %s", kind, i, 2+i, spec))
}

func (w *drawnWorld) destinations() string {
	return "destinationSelector: [" + w.one(
		"{kubeServiceRefs: {services: [{name: cart, namespace: shop, clusterName: "+w.one("east", "west")+"}]}}",
		"{kubeServiceRefs: {services: [{name: ledger, namespace: shop, clusterName: "+w.one("east", "west")+"}]}}",
		"{kubeServiceMatcher: {namespaces: [shop]}}", "{kubeServiceMatcher: {clusters: [east]}}",
	) + "]"
}

func (w *drawnWorld) traffic() string {
	match := w.one("", "", "httpRequestMatchers: [{uri: {prefix: /a}}], ", "httpRequestMatchers: [{method: POST}], ", "httpRequestMatchers: [{headers: [{name: x-team, value: one}]}], ")
	source := w.one("", "", "sourceSelector: [{kubeWorkloadMatcher: {namespaces: [front]}}], ")
	cart := "kubeService: {name: cart, namespace: shop, clusterName: " + w.one("east", "west") + w.one("", ", subset: {version: v1}") + "}"
	policy := w.one("requestTimeout: 2s", "faultInjection: {abort: {httpStatus: 419}}", "faultInjection: {abort: {httpStatus: 419}, percentage: 50}",
		"headerManipulation: {appendRequestHeaders: {x-team: one}}",
		"trafficShift: {destinations: [{weight: 100, "+cart+"}]}",
		"trafficShift: {destinations: [{weight: 40, "+cart+"}, {weight: 60, kubeService: {name: ledger, namespace: shop, clusterName: "+w.one("east", "west")+"}}]}",
		"mtls: {istio: {tlsMode: "+w.one("DISABLE", "ISTIO_MUTUAL")+"}}")
	return "{" + source + match + w.destinations() + ", policy: {" + policy + "}}"
}

func (w *drawnWorld) accessPolicy() string {
	source := w.one("", "sourceSelector: [{kubeIdentityMatcher: {namespaces: [front]}}], ", "sourceSelector: [{kubeIdentityMatcher: {namespaces: [shop], clusters: [east]}}], ",
		"sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: web, namespace: front, clusterName: "+w.one("east", "west")+"}]}}], ")
	return "{" + source + w.destinations() + w.one("", "", ", allowedMethods: [GET]", ", allowedPaths: [/a*]", ", allowedPorts: [9080]") + "}"
}
