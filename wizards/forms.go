package wizards

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// matcherFields select by namespaces, clusters and, if labelled, labels.
func matcherFields(prefix, path, what string, labelled bool) []Field {
	fields := []Field{
		{Flag: prefix + "-namespaces", Path: path + ".namespaces", Usage: what + " in these namespaces", codec: words("namespace")},
		{Flag: prefix + "-clusters", Path: path + ".clusters", Usage: what + " in these clusters", codec: words("cluster")},
	}
	if labelled {
		fields = append(fields, Field{Flag: prefix + "-labels", Path: path + ".labels", Usage: what + " with all of these labels", codec: pairs("label=value")})
	}
	return fields
}

// destinationFields select destinations in a part of the spec.
func destinationFields(part string) []Field {
	return append([]Field{
		{Flag: "all-destinations", Unless: part, Usage: "all destinations", codec: boolean()},
		{Flag: "destination", Path: part + "[0].kubeServiceRefs.services", Usage: "this service, by its name or as name.namespace.cluster", codec: each("service", parseService, formatService)},
	}, matcherFields("destination", part+"[0].kubeServiceMatcher", "services", true)...)
}

// TrafficPolicy is the form of TrafficPolicies.
func TrafficPolicy() *Form {
	f := &Form{Kind: snapshot.TrafficPolicy, sections: []section{
		{"Destinations", (*Session).askDestinations}, {"Callers", (*Session).askSources},
		{"Requests", (*Session).askRequests}, {"Actions", (*Session).askActions},
	}, requires: []requirement{
		{"destinationSelector", "--all-destinations, --destination, --destination-namespaces, --destination-clusters or --destination-labels"},
		{"policy", "what to do with the requests: --shift, --timeout, --retries, --delay, --abort, --mirror, --outlier-errors, --rate-limit, --csrf, --tls-mode, a header or CORS flag, or --field policy.…=…"},
	}}
	f.Fields = append(f.Fields, destinationFields("destinationSelector")...)
	f.Fields = append(f.Fields, matcherFields("source", "sourceSelector[0].kubeWorkloadMatcher", "only requests from workloads", true)...)
	add := func(flag, path, usage string, c codec) {
		f.Fields = append(f.Fields, Field{Flag: flag, Path: path, Usage: usage, codec: c})
	}
	add("match", "httpRequestMatchers", "only requests that match all of prefix=, exact=, suffix=, regex=, method=, header.NAME=VALUE, query.NAME=VALUE, separated by commas", each("conditions", parseMatcher, formatMatcher))
	add("shift", "policy.trafficShift.destinations", "send requests here: name.namespace.cluster, virtual=namespace/name or static=namespace/name, then ,weight=N ,port=N ,subset.LABEL=VALUE", each("target", parseTarget, formatTarget))
	add("timeout", "policy.requestTimeout", "maximum time for a request, including retries", duration())
	add("retries", "policy.retries.attempts", "number of retries after a failed attempt", number())
	add("per-try-timeout", "policy.retries.perTryTimeout", "maximum time for one attempt", duration())
	add("retry-on", "policy.retries.retryOn", "failures to retry after, for all methods, such as connect-failure, gateway-error, reset, 5xx; by default what is safe for the method", words("failure"))
	add("delay", "policy.faultInjection.fixedDelay", "delay requests by this time, as a test", duration())
	add("abort", "policy.faultInjection.abort.httpStatus", "fail requests with this HTTP status, as a test", number())
	add("fault-percent", "policy.faultInjection.percentage", "percentage of the requests that --delay or --abort affects", number())
	add("mirror", "policy.mirror.kubeService", "copy requests to this service, by its name or as name.namespace.cluster", one("service", parseService, formatService))
	add("mirror-port", "policy.mirror.port", "port of the --mirror service, if it has several", number())
	add("mirror-percent", "policy.mirror.percentage", "percentage of the requests that are copied", number())
	add("add-request-header", "policy.headerManipulation.appendRequestHeaders", "add a header to requests", pairs("name=value"))
	add("remove-request-header", "policy.headerManipulation.removeRequestHeaders", "remove headers from requests", words("name"))
	add("add-response-header", "policy.headerManipulation.appendResponseHeaders", "add a header to responses", pairs("name=value"))
	add("remove-response-header", "policy.headerManipulation.removeResponseHeaders", "remove headers from responses", words("name"))
	add("cors-origin", "policy.corsPolicy.allowOrigins", "origin from which browsers may call: the complete origin, or prefix=, suffix=, regex=", each("origin", parseString, formatString))
	add("cors-methods", "policy.corsPolicy.allowMethods", "methods that browsers may use", methods())
	add("cors-headers", "policy.corsPolicy.allowHeaders", "request headers that browsers may send", words("name"))
	add("cors-expose-headers", "policy.corsPolicy.exposeHeaders", "response headers that scripts may read", words("name"))
	add("cors-max-age", "policy.corsPolicy.maxAge", "how long browsers may cache the answer", duration())
	add("cors-credentials", "policy.corsPolicy.allowCredentials", "allow browsers to send credentials", boolean())
	add("outlier-errors", "policy.outlierDetection.consecutiveErrors", "consecutive errors after which an endpoint is not used", number())
	add("outlier-interval", "policy.outlierDetection.interval", "interval at which endpoints are checked", duration())
	add("outlier-ejection-time", "policy.outlierDetection.baseEjectionTime", "how long an endpoint is not used the first time", duration())
	add("outlier-max-percent", "policy.outlierDetection.maxEjectionPercent", "percentage of the endpoints that may be excluded", number())
	add("rate-limit", "policy.rateLimit.basic.anonymousLimits", "maximum rate of requests from each calling pod, such as 100/second", one("number/unit", parseLimit, formatLimit))
	add("csrf", "policy.csrf.filterEnabled", "reject requests that change something and come from another origin", boolean())
	add("csrf-shadow", "policy.csrf.shadowEnabled", "only count what --csrf would reject", boolean())
	add("csrf-origin", "policy.csrf.additionalOrigins", "host of another allowed origin: the complete host, or prefix=, suffix=, regex=", each("origin", parseString, formatString))
	add("csrf-percent", "policy.csrf.percentage", "percentage of the requests that --csrf checks", number())
	add("tls-mode", "policy.mtls.istio.tlsMode", "TLS mode of callers: ISTIO_MUTUAL, SIMPLE, DISABLE", text("mode"))
	return f
}

// AccessPolicy is the form of AccessPolicies.
func AccessPolicy() *Form {
	f := &Form{Kind: snapshot.AccessPolicy, sections: []section{
		{"Action", (*Session).askAction}, {"Callers", (*Session).askCallers},
		{"Destinations", (*Session).askDestinations}, {"Requests", askAllowed},
	}, requires: []requirement{
		{"sourceSelector", "--all-sources, --source-account, --source-namespaces or --source-clusters"},
		{"destinationSelector", "--all-destinations, --destination, --destination-namespaces, --destination-clusters or --destination-labels"},
	}}
	f.Fields = append(f.Fields,
		Field{Flag: actionFlag, Path: "action", Usage: "allow the calls (default), or deny them, whatever other policies allow", codec: lower(allow, deny)},
		Field{Flag: "enforcement", Path: "enforcement", Usage: "refuse what the policy says (default), or only say what it would refuse", codec: lower("enforce", "audit")},
		Field{Flag: "all-sources", Unless: "sourceSelector", Usage: "all callers", codec: boolean()},
		Field{Flag: "source-account", Path: "sourceSelector[0].kubeServiceAccountRefs.serviceAccounts", Usage: "callers with this service account, as name.namespace.cluster; * matches any", codec: each("account", parseAccount, formatAccount)},
	)
	f.Fields = append(f.Fields, matcherFields("source", "sourceSelector[0].kubeIdentityMatcher", "callers", false)...)
	f.Fields = append(f.Fields, destinationFields("destinationSelector")...)
	f.Fields = append(f.Fields,
		Field{Flag: "allowed-paths", Path: "allowedPaths", Usage: "allow, or deny, only these paths; a * at the beginning or end matches anything", codec: words("path")},
		Field{Flag: "allowed-methods", Path: "allowedMethods", Usage: "allow, or deny, only these HTTP methods", codec: methods()},
		Field{Flag: "allowed-ports", Path: "allowedPorts", Usage: "allow, or deny, only these ports of the services", codec: numbers()},
	)
	return f
}

// actionFlag says what an AccessPolicy does with the calls that it selects.
const actionFlag = "action"

// The values of actionFlag.
const (
	allow = "allow"
	deny  = "deny"
)

// lower is one of some words, which the field has in upper case.
func lower(words ...string) codec {
	return one(strings.Join(words, "|"), func(s string) (any, error) {
		if !slices.Contains(words, s) {
			return nil, fmt.Errorf("%q: must be %s", s, strings.Join(words, " or "))
		}
		return strings.ToUpper(s), nil
	}, func(v any) (string, bool) {
		text, _ := v.(string)
		word := strings.ToLower(text)
		return word, slices.Contains(words, word) && strings.ToUpper(word) == text
	})
}

// VirtualMesh is the form of VirtualMeshes.
func VirtualMesh() *Form {
	f := &Form{Kind: snapshot.VirtualMesh, sections: []section{
		{"Meshes", askMeshes}, {"Trust", askTrust}, {"Federation", (*Session).askFederation}, {"Access", askGlobalAccess},
	}, requires: []requirement{
		{"meshes", "--mesh, for each mesh to join"},
	}}
	add := func(flag, path, usage string, c codec) {
		f.Fields = append(f.Fields, Field{Flag: flag, Path: path, Usage: usage, codec: c})
	}
	const selected = "federation.selectors[0].destinationSelectors[0]"
	add("mesh", "meshes", "join this mesh, as namespace/name", each("mesh", parseObject, formatObject))
	add("trust", "mtlsConfig", "how the meshes trust each other: shared, limited", trust())
	add("root-secret", "mtlsConfig.shared.rootCertificateAuthority.secret", "Secret with the shared root certificate, as namespace/name", one("secret", parseObject, formatObject))
	add("auto-restart-pods", "mtlsConfig.autoRestartPods", "restart pods that need new certificates", boolean())
	add("federate", "federation.selectors", "services that other meshes can reach: all", federateAll())
	add("federate-destination", selected+".kubeServiceRefs.services", "other meshes can reach this service, by its name or as name.namespace.cluster", each("service", parseService, formatService))
	f.Fields = append(f.Fields, matcherFields("federate", selected+".kubeServiceMatcher", "other meshes can reach services", true)...)
	add("federate-to", "federation.selectors[0].meshes", "only this mesh can reach them, as namespace/name", each("mesh", parseObject, formatObject))
	add("federation-mode", "federation.mode", "of these, what a mesh imports: ALL, or only what is DECLARED to be called", text("mode"))
	add("flat-network", "federation.flatNetwork", "pods reach pods of other clusters without gateways", boolean())
	add("hostname-suffix", "federation.hostnameSuffix", "suffix of host names in other meshes (default: global)", text("suffix"))
	add("global-access", "globalAccessPolicy", "reject calls that no AccessPolicy allows: MESH_DEFAULT, ENABLED, DISABLED, or AUDIT, which only says what ENABLED would reject", text("setting"))
	return f
}

// trust is a trust model, written as its name.
func trust() codec {
	return one("model", func(s string) (any, error) {
		if s != "shared" && s != "limited" {
			return nil, fmt.Errorf("%q: must be shared or limited", s)
		}
		return map[string]any{s: map[string]any{}}, nil
	}, func(v any) (string, bool) {
		m, _ := v.(map[string]any)
		for _, model := range []string{"shared", "limited"} {
			if _, ok := m[model]; ok {
				return model, true
			}
		}
		return "", false
	})
}

// federateAll is the list that federates all services.
func federateAll() codec {
	return one("what", func(s string) (any, error) {
		if s != "all" {
			return nil, fmt.Errorf("%q: must be all; to select services, use --federate-destination, --federate-namespaces, --federate-clusters or --federate-labels", s)
		}
		return []any{map[string]any{}}, nil
	}, func(v any) (string, bool) {
		data, err := json.Marshal(v)
		return "all", err == nil && slices.Equal(data, []byte("[{}]"))
	})
}
