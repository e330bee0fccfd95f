package envoy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/envoy"
)

func TestRouteFor(t *testing.T) {
	t.Parallel()
	var host envoy.VirtualHost
	require.NoError(t, json.Unmarshal([]byte(`{"routes": [
		{"name": "exact", "match": {"path": "/A", "caseSensitive": false}},
		{"name": "separated", "match": {"pathSeparatedPrefix": "/b"}},
		{"name": "regex", "match": {"safeRegex": {"regex": "/c[0-9]"}}},
		{"name": "present", "match": {"prefix": "/d", "headers": [{"name": "x", "presentMatch": true}]}},
		{"name": "absent", "match": {"prefix": "/d", "headers": [{"name": "y", "presentMatch": true, "invertMatch": true}]}},
		{"name": "not it", "match": {"prefix": "/e", "headers": [{"name": "y", "stringMatch": {"exact": "1"}, "invertMatch": true, "treatMissingHeaderAsEmpty": true}]}},
		{"name": "query", "match": {"prefix": "/f", "queryParameters": [{"name": "q", "stringMatch": {"prefix": "ab", "ignoreCase": true}}]}},
		{"name": "method", "match": {"prefix": "/", "headers": [{"name": ":method", "safeRegexMatch": {"regex": "PUT|POST"}}]}}
	]}`), &host))
	for _, tt := range []struct {
		request envoy.Request
		want    string
	}{
		{envoy.Request{Path: "/a?x"}, "exact"},
		{envoy.Request{Path: "/b/more"}, "separated"},
		{envoy.Request{Path: "/bmore"}, ""},
		{envoy.Request{Path: "/c1"}, "regex"},
		{envoy.Request{Path: "/c12"}, ""},
		{envoy.Request{Path: "/d", Headers: map[string]string{"x": ""}}, "present"},
		{envoy.Request{Path: "/d"}, "absent"},
		{envoy.Request{Path: "/d", Headers: map[string]string{"y": ""}}, ""},
		{envoy.Request{Path: "/e"}, "not it"},
		{envoy.Request{Path: "/e", Headers: map[string]string{"y": "1"}}, ""},
		{envoy.Request{Path: "/f?p=1&q=ABC"}, "query"},
		{envoy.Request{Path: "/f?q=x"}, ""},
		{envoy.Request{Path: "/", Method: "POST"}, "method"},
	} {
		got := ""
		if route := host.RouteFor(tt.request); route != nil {
			got = route.Name
		}
		assert.Equal(t, tt.want, got, "%+v", tt.request)
	}
}

func TestAdmits(t *testing.T) {
	t.Parallel()
	var rules envoy.RBAC
	require.NoError(t, json.Unmarshal([]byte(`{"policies": {
		"reads": {
			"permissions": [{"andRules": {"rules": [
				{"orRules": {"rules": [{"urlPath": {"path": {"prefix": "/b"}}}, {"urlPath": {"path": {"suffix": ".json"}}}, {"uriTemplate": {"typedConfig": {"pathTemplate": "/c/*"}}}]}},
				{"header": {"name": ":method", "stringMatch": {"exact": "GET"}}}, {"destinationPort": 9080}
			]}}],
			"principals": [{"andIds": {"ids": [
				{"authenticated": {"principalName": {"safeRegex": {"regex": ".*/ns/a/.*"}}}}, {"notId": {"filterState": {"key": "io.istio.peer_principal", "stringMatch": {"exact": "spiffe://d/ns/a/sa/b"}}}}
			]}}]
		},
		"all of one": {"permissions": [{"any": true}], "principals": [{"authenticated": {"principalName": {"exact": "spiffe://d/ns/x/sa/y"}}}]}
	}}`), &rules))
	ask := func(method, path, principal string, port uint32) bool {
		return rules.Decide(envoy.Request{Method: method, Path: path, Principal: principal, Port: port}).Answer == envoy.Yes
	}
	const caller = "spiffe://d/ns/a/sa/c"
	assert.True(t, ask("GET", "/b/1", caller, 9080))
	assert.True(t, ask("GET", "/x.json?y", caller, 9080))
	assert.True(t, ask("GET", "/c/1", caller, 9080))
	assert.False(t, ask("GET", "/c/1/2", caller, 9080))
	assert.False(t, ask("POST", "/b/1", caller, 9080))
	assert.False(t, ask("GET", "/b/1", caller, 80))
	assert.False(t, ask("GET", "/b/1", "spiffe://d/ns/a/sa/b", 9080), "not this one")
	assert.False(t, ask("GET", "/b/1", "", 9080), "nobody")
	assert.True(t, ask("PUT", "/", "spiffe://d/ns/x/sa/y", 1))
	rules.Action = "DENY"
	assert.False(t, ask("GET", "/b/1", caller, 9080))
	assert.True(t, ask("POST", "/b/1", caller, 9080))
	assert.Equal(t, envoy.Yes, (*envoy.RBAC)(nil).Decide(envoy.Request{}).Answer)
	assert.Equal(t, envoy.No, (&envoy.RBAC{}).Decide(envoy.Request{}).Answer)
}

// TestUnknownDecides: what is not known decides only where nothing else does.
func TestUnknownDecides(t *testing.T) {
	t.Parallel()
	const newer, all, none = `{"newer": {"than": "this"}}`, `{"any": true}`, `{"notRule": {"any": true}}`
	for _, tt := range []struct {
		action, permissions string
		want                envoy.Answer
		doubt               string
	}{
		{"ALLOW", newer, envoy.Unknown, `p: {"newer":{"than":"this"}}`},
		{"DENY", newer, envoy.Unknown, `p: {"newer":{"than":"this"}}`},
		{"ALLOW", newer + "," + all, envoy.Yes, ""},
		{"DENY", newer + "," + all, envoy.No, ""},
		{"ALLOW", `{"andRules": {"rules": [` + newer + "," + none + `]}}`, envoy.No, ""},
		{"ALLOW", `{"notRule": ` + newer + `}`, envoy.Unknown, `p: not({"newer":{"than":"this"}})`},
		{"ALLOW", `{"header": {"name": "x", "newMatch": "y"}}`, envoy.Unknown, "p: x?"},
		{"ALLOW", `{"header": {"name": "user-agent", "stringMatch": {"prefix": "curl"}}}`, envoy.Unknown, "p: user-agent=curl*"},
		{"ALLOW", `{"urlPath": {"path": {"custom": {}}}}`, envoy.Unknown, "p: path?"},
		{"ALLOW", `{"urlPath": {"path": {"safeRegex": {"regex": "("}}}}`, envoy.Unknown, "p: path~("},
		{"LOG", none, envoy.Yes, ""},
		{"QUEUE", all, envoy.Unknown, "action QUEUE"},
	} {
		var rules envoy.RBAC
		require.NoError(t, json.Unmarshal([]byte(`{"action": "`+tt.action+`", "policies": {"p": {"permissions": [`+tt.permissions+`], "principals": [{"any": true}]}}}`), &rules))
		got := rules.Decide(envoy.Request{Method: "GET", Path: "/"})
		assert.Equal(t, tt.want, got.Answer, "%s %s", tt.action, tt.permissions)
		assert.Equal(t, tt.doubt, got.Doubt, "%s %s", tt.action, tt.permissions)
	}
	var rules envoy.RBAC
	require.NoError(t, json.Unmarshal([]byte(`{"policies": {"p": {"permissions": [{"any": true}], "principals": [{"any": true}], "checkedCondition": {}}}}`), &rules))
	assert.Equal(t, "p: checkedCondition", rules.Decide(envoy.Request{}).Doubt)
}
