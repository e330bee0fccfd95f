package envoy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/envoy"
)

// sample is a small proxy configuration, in the format of protojson.
const sample = `{
"listeners": [{
  "name": "out", "trafficDirection": "OUTBOUND", "address": {"socketAddress": {"address": "240.0.0.1", "portValue": 7000}},
  "filterChains": [{"filters": [{"name": "hcm", "typedConfig": {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "httpFilters": [{"name": "limit", "typedConfig": {
      "filterEnabled": {"defaultValue": {"numerator": 5, "denominator": "MILLION"}},
      "tokenBucket": {"maxTokens": 3, "tokensPerFill": 3, "fillInterval": "60s"}
    }}]
  }}]}],
  "defaultFilterChain": {"filters": [{"name": "tcp", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "two"}}]}
}, {
  "name": "virtualInbound", "address": {"socketAddress": {"address": "0.0.0.0", "portValue": 15006}},
  "filterChains": [{
    "filterChainMatch": {"destinationPort": 9080, "serverNames": ["b", "a"]},
    "filters": [{"name": "hcm", "typedConfig": {
      "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      "httpFilters": [{"name": "envoy.filters.http.rbac", "typedConfig": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
        "rules": {"policies": {"p": {
          "permissions": [{"andRules": {"rules": [
            {"orRules": {"rules": [{"urlPath": {"path": {"prefix": "/b"}}}, {"urlPath": {"path": {"exact": "/a"}}}]}},
            {"orRules": {"rules": [{"destinationPort": 9080}]}},
            {"uriTemplate": {"name": "uri-template", "typedConfig": {"pathTemplate": "/c/*"}}},
            {"notRule": {"header": {"name": ":method", "stringMatch": {"exact": "PUT"}}}}
          ]}}],
          "principals": [
            {"andIds": {"ids": [{"orIds": {"ids": [{"authenticated": {"principalName": {"exact": "spiffe://x/ns/y/sa/z"}}}]}}]}},
            {"filterState": {"key": "io.istio.peer_principal", "stringMatch": {"safeRegex": {"regex": ".*/ns/y/.*"}}}},
            {"any": true},
            {"newer": {"than": "this"}}
          ]
        }}}
      }}]
    }}]
  }, {
    "filterChainMatch": {"destinationPort": 7000, "serverNames": ["c"]},
    "filters": [{"name": "envoy.filters.network.rbac", "typedConfig": {}}, {"name": "tcp", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "one"}}]
  }]
}],
"routes": [{"name": "either:7000", "virtualHosts": [{"domains": ["*"]}]}, {"name": "80", "virtualHosts": [{"domains": ["*"]}]}, {"name": "9080", "virtualHosts": [
  {"domains": ["reviews", "reviews.bookinfo:9080"], "routes": [
    {"match": {"prefix": "/"}, "route": {"timeout": "3s", "weightedClusters": {"clusters": [{"name": "one", "weight": 1}, {"name": "two", "weight": 3}]}}},
    {"match": {"prefix": "/"}, "route": {"cluster": "one"}}
  ]}
]}],
"clusters": [
  {"name": "one", "type": "EDS", "edsClusterConfig": {"serviceName": "eds-one"}},
  {"name": "two", "type": "STRICT_DNS", "loadAssignment": {"clusterName": "two", "endpoints": [
    {"priority": 1, "loadBalancingWeight": 7, "lbEndpoints": [{"loadBalancingWeight": 7, "endpoint": {"address": {"socketAddress": {"address": "two.example", "portValue": 443}}}}]}
  ]}}
],
"endpoints": [{"clusterName": "eds-one", "endpoints": [{"lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}}]}]}],
"secrets": []
}`

func TestQuestions(t *testing.T) {
	t.Parallel()
	config, err := envoy.Parse([]byte(sample))
	require.NoError(t, err)

	host := config.VirtualHost("reviews", 9080)
	require.NotNil(t, host)
	assert.Same(t, host, config.VirtualHost("reviews.bookinfo", 9080))
	assert.Nil(t, config.VirtualHost("reviews", 80))
	assert.Equal(t, "3s", host.Routes[0].Route.Timeout)
	assert.Equal(t, []envoy.ClusterWeight{{Name: "one", Weight: 1}, {Name: "two", Weight: 3}}, host.Routes[0].Route.Targets())
	assert.Equal(t, []envoy.ClusterWeight{{Name: "one"}}, host.Routes[1].Route.Targets())

	assert.Equal(t, []envoy.Endpoint{{Address: "10.0.0.1", Port: 80}}, config.EndpointsOf("one"))
	assert.Equal(t, []envoy.Endpoint{{Address: "two.example", Port: 443, Weight: 7, GroupWeight: 7, Priority: 1}}, config.EndpointsOf("two"))
	assert.Nil(t, config.EndpointsOf("three"))

	assert.Equal(t, []string{"a", "b", "c"}, config.ServerNames(15006))
	assert.Equal(t, "one", config.TCPCluster(15006, "c"))
	assert.Empty(t, config.TCPCluster(15006, "a"))
	assert.Empty(t, config.ServerNames(15443))

	require.NotNil(t, config.VirtualHost("either", 7000))
	assert.Equal(t, []string{"*"}, config.VirtualHost("either", 7000).Domains)
	assert.Equal(t, []string{"240.0.0.1:7000"}, config.TCPListeners("two"))
	assert.Empty(t, config.TCPListeners("three"))

	outbound := config.OutboundHTTP()
	require.Len(t, outbound, 1)
	limit := outbound[0][0].TypedConfig
	assert.InDelta(t, 0.0005, limit.FilterEnabled.Percent(), 1e-9)
	assert.Zero(t, limit.FilterEnforced.Percent())
	assert.Equal(t, &envoy.TokenBucket{MaxTokens: 3, TokensPerFill: 3, FillInterval: "60s"}, limit.TokenBucket)

	var passed []string
	for _, chain := range config.Passed() {
		var names []string
		for _, f := range chain {
			names = append(names, f.Name)
		}
		passed = append(passed, strings.Join(names, ","))
	}
	assert.Equal(t, []string{"hcm,limit", "tcp", "hcm,envoy.filters.http.rbac", "envoy.filters.network.rbac,tcp"}, passed)
	network := config.NetworkFilters(15006, 7000)
	require.Len(t, network, 1)
	assert.Equal(t, "envoy.filters.network.rbac", network[0][0].Name)

	filters := config.HTTPFilters(15006, 9080)
	require.Len(t, filters, 1)
	require.Len(t, filters[0], 1)
	policy := filters[0][0].TypedConfig.Rules.Policies["p"]
	assert.Equal(t, "and(not(:method=PUT), or(path=/a, path=/b*), path template /c/*, port=9080)", policy.Permissions[0].String())
	var principals []string
	for _, p := range policy.Principals {
		principals = append(principals, p.String())
	}
	assert.Equal(t, []string{"principal=spiffe://x/ns/y/sa/z", "io.istio.peer_principal~.*/ns/y/.*", "any", `{"newer":{"than":"this"}}`}, principals)
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for denominator, want := range map[string]float64{"": 25, "HUNDRED": 25, "TEN_THOUSAND": 0.25, "MILLION": 0.0025} {
		assert.InDelta(t, want, envoy.FractionalPercent{Numerator: 25, Denominator: denominator}.Percent(), 1e-9, denominator)
	}
}

func TestParseSaysWhatItReads(t *testing.T) {
	t.Parallel()
	_, err := envoy.Parse([]byte("no JSON"))
	require.ErrorContains(t, err, "a proxy's configuration")
}
