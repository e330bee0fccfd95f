package envoy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/envoy"
)

// dump reads what a proxy answered, without what no request needs.
func dump(t *testing.T, name string, edits ...string) *envoy.Config {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	for i := 0; i < len(edits); i += 2 {
		require.Contains(t, string(data), edits[i])
		data = []byte(strings.ReplaceAll(string(data), edits[i], edits[i+1]))
	}
	config, err := envoy.ParseDump(data)
	require.NoError(t, err)
	return config
}

// answerText says what became of a request at the proxy of its caller.
func answerText(s envoy.Sent) string {
	var targets []string
	for _, target := range s.Targets {
		targets = append(targets, fmt.Sprintf("%d %s", target.Weight, target.Name))
	}
	out := []string{map[envoy.Answer]string{envoy.No: "no", envoy.Unknown: "unknown", envoy.Yes: "yes"}[s.Passage.Answer]}
	for _, part := range []string{s.VirtualHost, s.Stopped, strings.Join(targets, ", "), strings.Join(s.Passage.Doubts, ", ")} {
		if part != "" {
			out = append(out, part)
		}
	}
	if s.Status != 0 {
		out = append(out, fmt.Sprint(s.Status))
	}
	return strings.Join(out, "; ")
}

func TestSend(t *testing.T) {
	t.Parallel()
	const (
		shift = "75 outbound|9080|version-v3|reviews.bookinfo.svc.cluster-2.global, 15 outbound|9080|version-v1|reviews.bookinfo.svc.cluster.local, " +
			"10 outbound|9080|version-v2|reviews.bookinfo.svc.cluster.local"
		reviews, details = "reviews.bookinfo.svc.cluster.local:9080", "details.bookinfo.svc.cluster.local:9080"
		router           = `{"name": "envoy.filters.http.router"`
		match            = `"match": {"case_sensitive": true, "prefix": "/"}`
	)
	get := envoy.Request{Method: "GET", Path: "/"}
	for _, tt := range []struct {
		name, host string
		port       uint32
		edits      []string
		want       string
	}{
		{"short name", "reviews", 9080, nil, "yes; " + reviews + "; " + shift},
		{"in capitals", "Reviews", 9080, nil, "yes; " + reviews + "; " + shift},
		{"another host", "nobody.example", 9080, nil, "yes; allow_any; 0 PassthroughCluster"},
		{"another port", "reviews", 81, nil, "yes; it has no listener for requests to port 81"},
		{
			"a filter that is not known", "details", 9080, []string{router, `{"name": "custom", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"}}, ` + router},
			"unknown; " + details + "; 0 outbound|9080||details.bookinfo.svc.cluster.local; filter custom (Lua)",
		},
		{
			"a filter that is disabled", "details", 9080, []string{router, `{"name": "custom", "disabled": true, "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"}}, ` + router},
			"yes; " + details + "; 0 outbound|9080||details.bookinfo.svc.cluster.local",
		},
		{
			"tokens that are optional", "details", 9080, []string{router, `{"name": "jwt", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication", "rules": [{"requires": {"requires_any": {"requirements": [{"provider_name": "p"}, {"allow_missing": {}}]}}}]}}, ` + router},
			"yes; " + details + "; 0 outbound|9080||details.bookinfo.svc.cluster.local",
		},
		{
			"tokens that are required", "details", 9080, []string{router, `{"name": "jwt", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication", "rules": [{"requires": {"provider_name": "p"}}]}}, ` + router},
			"unknown; " + details + "; 0 outbound|9080||details.bookinfo.svc.cluster.local; filter jwt (JwtAuthentication)",
		},
		{"a match that is not known", "reviews", 9080, []string{match, `"match": {"prefix": "/", "dynamic_metadata": []}`}, "unknown; " + reviews + "; whether route 1 takes the request: it has dynamicMetadata"},
		{"a match that is not known, and one that fails", "reviews", 9080, []string{match, `"match": {"prefix": "/other", "dynamic_metadata": []}`}, "yes; " + reviews + "; no route of virtual host " + reviews + " takes it; 404"},
		{"an action that is not known", "reviews", 9080, []string{`"weighted_clusters": {`, `"cluster_specifier_plugin": "x", "weighted_clusters": {`}, "unknown; " + reviews + "; " + shift + "; the route's clusterSpecifierPlugin"},
		{"a path that is rewritten", "reviews", 9080, []string{`"weighted_clusters": {`, `"prefix_rewrite": "/x", "weighted_clusters": {`}, "unknown; " + reviews + "; " + shift + "; the route's prefixRewrite"},
		{"shares by a header", "reviews", 9080, []string{`"weighted_clusters": {`, `"weighted_clusters": {"header_name": "x", `}, "unknown; " + reviews + "; " + shift + "; the route's headerName"},
		{"settings of all routes", "reviews", 9080, []string{`"name": "9080", `, `"name": "9080", "request_headers_to_remove": ["x"], `}, "unknown; " + reviews + "; " + shift + "; routes 9080: requestHeadersToRemove"},
		{"settings of a target", "details", 9080, []string{`"route": {"cluster": "outbound|9080||details.bookinfo.svc.cluster.local", `, `"route": {"weighted_clusters": {"clusters": [{"name": "x", "weight": 1, "typed_per_filter_config": {}}]}, `}, "unknown; " + details + "; 1 x; target x: typedPerFilterConfig"},
		{"access by matchers", "details", 9080, []string{router, `{"name": "by-matcher", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC", "matcher": {}}}, ` + router}, "unknown; " + details + "; 0 outbound|9080||details.bookinfo.svc.cluster.local; by-matcher: it decides by matchers"},
		{"settings of a route", "reviews", 9080, []string{`"decorator": {"operation": "reviews:9080/*"}`, `"typed_per_filter_config": {"my_filter": {"@type": "x.Y"}}`}, "unknown; " + reviews + "; " + shift + "; the route's own settings for filter my_filter"},
		{"headers that all get", "reviews", 9080, []string{`"name": "` + reviews + `"`, `"name": "` + reviews + `", "request_headers_to_add": []`}, "unknown; " + reviews + "; " + shift + "; virtual host " + reviews + ": requestHeadersToAdd"},
	} {
		got := dump(t, "productpage-cluster-1", tt.edits...).Send(tt.host, tt.port, get)
		assert.Equal(t, tt.want, answerText(got), tt.name)
	}
	sent := dump(t, "productpage-cluster-1").Send("reviews", 9080, get)
	require.NotNil(t, sent.Route)
	assert.JSONEq(t, `{"config": "/apis/networking.istio.io/v1/namespaces/bookinfo/virtual-service/reviews"}`, string(sent.Route.Metadata.FilterMetadata["istio"]))
}

func TestConnectAndPassOn(t *testing.T) {
	t.Parallel()
	caller, gateway := dump(t, "productpage-cluster-1"), dump(t, "eastwestgateway-cluster-2")
	list, reason := caller.Connect("outbound|9080|version-v3|reviews.bookinfo.svc.cluster-2.global")
	require.Len(t, list, 1, reason)
	c := list[0]
	assert.Equal(t, "192.0.2.34", c.Endpoint.Address)
	assert.True(t, c.TLS && c.Certificate)
	passed := gateway.PassOn(envoy.Incoming{Port: c.Endpoint.Port, TLS: c.TLS, SNI: c.SNI, ALPN: c.ALPN})
	assert.Empty(t, passed.Stopped)
	assert.Equal(t, envoy.Yes, passed.Passage.Answer)
	assert.False(t, passed.EndsTLS)
	assert.Equal(t, "outbound_.9080_.version-v3_.reviews.bookinfo.svc.cluster-2.global", passed.Cluster)
	list, reason = gateway.Connect(passed.Cluster)
	require.Len(t, list, 1, reason)
	assert.False(t, list[0].TLS, "it passes on what the caller encrypted")

	passed = gateway.PassOn(envoy.Incoming{Port: 15443, TLS: true, SNI: "outbound_.9080_._.other.global", ALPN: c.ALPN})
	assert.Equal(t, "no filter chain is for server name outbound_.9080_._.other.global", passed.Stopped)
	passed = gateway.PassOn(envoy.Incoming{Port: 1})
	assert.Equal(t, "it has no listener for port 1", passed.Stopped)
	_, reason = caller.Connect("nobody")
	assert.Equal(t, "it has no cluster nobody", reason)
	_, reason = dump(t, "productpage-cluster-1", `"health_status": "HEALTHY"`, `"health_status": "DRAINING"`).Connect("outbound|9080||reviews.bookinfo.svc.cluster.local")
	assert.Equal(t, "cluster outbound|9080||reviews.bookinfo.svc.cluster.local has no healthy endpoint, of 2", reason)
}

func TestReceive(t *testing.T) {
	t.Parallel()
	const (
		domain = "spiffe://cluster-1.example/ns/bookinfo/sa/bookinfo-"
		allows = "ns[bookinfo]-policy[reviews]-rule[0]"
		denies = "ns[bookinfo]-policy[no-puts]-rule[0]"
	)
	mutual := envoy.Incoming{Port: 9080, TLS: true, ALPN: []string{"istio"}}
	plain := envoy.Incoming{Port: 9080, Plain: []string{"http/1.1"}}
	for _, tt := range []struct {
		name, pod, caller string
		in                envoy.Incoming
		headers           map[string]string
		want              envoy.Answer
		policy, stopped   string
	}{
		{"whom a policy allows", "reviews-v2-cluster-1", "productpage", mutual, nil, envoy.Yes, allows, ""},
		{"whom none allows", "reviews-v2-cluster-1", "details", mutual, nil, envoy.No, "", ""},
		{"TLS without a certificate", "reviews-v2-cluster-1", "productpage", envoy.Incoming{Port: 9080, TLS: true, NoCertificate: true, ALPN: []string{"istio"}}, nil, envoy.Yes, "", "filter chain 0.0.0.0_9080 for port 9080 takes only TLS with a certificate of the caller"},
		{"without an identity", "reviews-v2-cluster-1", "productpage", plain, nil, envoy.No, "", ""},
		{"whom a policy denies", "reviews-v1-cluster-1", "productpage", mutual, nil, envoy.No, denies, ""},
		{"whom it does not deny", "reviews-v1-cluster-1", "productpage", mutual, map[string]string{"x-trial": "yes"}, envoy.Yes, allows, ""},
		{"mutual TLS where it is off", "ratings-v1-cluster-1", "productpage", mutual, nil, envoy.Yes, "", "no filter chain is for connections with TLS to port 9080"},
		{"plain text where TLS is off", "ratings-v1-cluster-1", "productpage", plain, nil, envoy.No, "", ""},
		{"a port of no service", "reviews-v2-cluster-1", "productpage", envoy.Incoming{Port: 7, TLS: true, ALPN: []string{"istio"}}, nil, envoy.Yes, allows, ""},
		{"a port of no service, whom none allows", "reviews-v2-cluster-1", "details", envoy.Incoming{Port: 7, TLS: true, ALPN: []string{"istio"}}, nil, envoy.No, "", ""},
		{"no listener", "eastwestgateway-cluster-2", "productpage", mutual, nil, envoy.Yes, "", "it has no inbound listener"},
	} {
		got := dump(t, tt.pod).Receive(tt.in, envoy.Request{Method: "GET", Path: "/", Principal: domain + tt.caller, Headers: tt.headers})
		assert.Equal(t, tt.want, got.Passage.Answer, tt.name)
		assert.Equal(t, tt.stopped, got.Stopped, tt.name)
		policy := got.Passage.Decision.Policy
		if got.Passage.Answer == envoy.Yes {
			policy = strings.Join(got.Passage.Allowed, ",")
		}
		assert.Equal(t, tt.policy, policy, tt.name)
	}
	unknown := dump(t, "reviews-v2-cluster-1", `"destination_port": 9080`, `"destination_port": 9080, "source_prefix_ranges": []`).Receive(mutual, envoy.Request{})
	assert.Equal(t, []string{"filter chain 0.0.0.0_9080 matches by sourcePrefixRanges"}, unknown.Passage.Doubts)
}

// TestDumpKeepsNames: keys of maps are no names of fields, and nothing below metadata is.
func TestDumpKeepsNames(t *testing.T) {
	t.Parallel()
	config, err := envoy.ParseDump([]byte(`{"configs": [
		{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [
			{"name": "late", "error_state": {"details": "no such \"filter_x\""}},
			{"name": "l", "active_state": {"listener": {"name": "a_b", "traffic_direction": "INBOUND", "filter_chains": [{"filters": [{"name": "r", "typed_config": {
				"@type": "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC", "rules": {"policies": {"my_policy": {"permissions": [{"and_rules": {"rules": [{"any": true}]}}], "principals": [{"any": true}]}}}}}]}]}}}
		]},
		{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "dynamic_active_clusters": [{"cluster": {"name": "c", "alt_stat_name": "x", "metadata": {"filter_metadata": {"my_filter": {"some_key": {"inner_key": 1}}}}, "eds_cluster_config": {"service_name": "s"}}}]},
		{"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {}}
	]}`))
	require.NoError(t, err)
	assert.Equal(t, []string{`listener late: no such "filter_x"`}, config.Refused)
	require.Len(t, config.Listeners, 1)
	assert.Equal(t, "a_b", config.Listeners[0].Name)
	policies := config.Listeners[0].FilterChains[0].Filters[0].TypedConfig.Rules.Policies
	require.Contains(t, policies, "my_policy")
	assert.Equal(t, "any", policies["my_policy"].Permissions[0].String())
	assert.Equal(t, "s", config.Clusters[0].EDSClusterConfig.ServiceName)
	assert.JSONEq(t, `{"some_key": {"inner_key": 1}}`, string(config.Clusters[0].Metadata.FilterMetadata["my_filter"]))

	for _, bad := range []string{"", "{", `"`, `{"configs": []}`, `{"configs": [{"@type": 1}]}`, `{"configs": [{"@type": "x.ListenersConfigDump", "dynamic_listeners": 7}]}`, "<html>"} {
		_, err := envoy.ParseDump([]byte(bad))
		assert.ErrorContains(t, err, "a proxy's configuration", bad)
	}
}

// FuzzParseDump: what a proxy answers is not trusted.
func FuzzParseDump(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "eastwestgateway-cluster-2.json"))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"configs": [{"@type": "x.ListenersConfigDump", "dynamic_listeners": [{"active_state": {"listener": {"traffic_direction": "OUTBOUND", "address": {"socket_address": {"address": "0.0.0.0", "port_value": 9080}},
		"filter_chains": [{"filters": [{"typed_config": {"@type": "x.HttpConnectionManager", "rds": {"route_config_name": "9080"}, "http_filters": [{"typed_config": {"@type": "x.RBAC", "rules": {"policies": {"p": {"permissions": [{"not_rule": {"header": {"name": "x", "string_match": {"safe_regex": {"regex": "."}}}}}], "principals": [{"any": true}]}}}}}]}}]}]}}}]},
		{"@type": "x.RoutesConfigDump", "dynamic_route_configs": [{"route_config": {"name": "9080", "virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}]}}]},
		{"@type": "x.ClustersConfigDump", "dynamic_active_clusters": [{"cluster": {"name": "c", "type": "EDS", "transport_socket_matches": [{"match": {"a": "b"}, "transport_socket": {"typed_config": {"@type": "x.UpstreamTlsContext"}}}]}}]}]}`))
	f.Add([]byte(`{"a_b":"\"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := envoy.ParseDump(data)
		if err != nil {
			return
		}
		sent := config.Send("reviews", 9080, envoy.Request{Method: "GET", Path: "/a?b", Headers: map[string]string{"x": "y"}})
		for i := range sent.Targets {
			config.Connect(sent.Targets[i].Name)
		}
		config.Receive(envoy.Incoming{Port: 9080, TLS: true, ALPN: []string{"istio"}}, envoy.Request{Method: "GET", Path: "/", Principal: "spiffe://a/ns/b/sa/c"})
		config.PassOn(envoy.Incoming{Port: 15443, TLS: true})
		config.SendConnection(envoy.Outgoing{Addresses: []string{"10.0.0.1"}, Port: 9080, Leads: func(string) bool { return true }})
		config.SendConnection(envoy.Outgoing{Port: 9080, Leads: func(string) bool { return true }})
		config.Enter(envoy.Entering{Port: 15443, TLS: true, SNI: "a"}, envoy.Request{Method: "GET", Path: "/", Host: "a"})
		_, err = json.Marshal(sent.Passage)
		require.NoError(t, err)
	})
}

// TestChanged: headers are changed for the target first, and then for the route.
func TestChanged(t *testing.T) {
	t.Parallel()
	var route envoy.Route
	require.NoError(t, json.Unmarshal([]byte(`{
		"requestHeadersToRemove": ["Gone"], "requestHeadersToAdd": [
			{"header": {"key": "A", "value": "2"}}, {"header": {"key": "b", "value": "2"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"},
			{"header": {"key": "c", "value": "2"}, "appendAction": "ADD_IF_ABSENT"}, {"header": {"key": "d", "value": "2"}, "appendAction": "OVERWRITE_IF_EXISTS"}],
		"route": {"hostRewriteLiteral": "other", "weightedClusters": {"clusters": [{"name": "x", "weight": 1, "requestHeadersToAdd": [{"header": {"key": "gone", "value": "3"}}]}]}}
	}`), &route))
	got := envoy.Request{Host: "one", Headers: map[string]string{"a": "1", "b": "1", "c": "1", "gone": "1"}}.Changed(&route.Route.Targets()[0], &route)
	assert.Equal(t, map[string]string{"a": "1,2", "b": "2", "c": "1"}, got.Headers)
	assert.Equal(t, "other", got.Host)
}
