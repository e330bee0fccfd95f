package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTokens: where proxies look for tokens, and what follows if there is one.
func TestTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rules string
		call  snapshot.Call
		where string
	}{
		"none":                      {"[{issuer: a}]", snapshot.Call{HTTP: true}, ""},
		"no rule":                   {"[]", snapshot.Call{HTTP: true, Headers: map[string]string{"authorization": "Bearer x"}}, ""},
		"the usual header":          {"[{issuer: a}]", snapshot.Call{HTTP: true, Headers: map[string]string{"authorization": "Bearer x"}}, "header authorization"},
		"another scheme":            {"[{issuer: a}]", snapshot.Call{HTTP: true, Headers: map[string]string{"authorization": "Basic x"}}, ""},
		"the usual parameter":       {"[{issuer: a}]", snapshot.Call{HTTP: true, Query: "a=b&access_token=c"}, "query parameter access_token"},
		"a header":                  {"[{fromHeaders: [{name: X-A}]}]", snapshot.Call{HTTP: true, Headers: map[string]string{"x-a": "x"}}, "header x-a"},
		"not the usual any more":    {"[{fromHeaders: [{name: X-A}]}]", snapshot.Call{HTTP: true, Headers: map[string]string{"authorization": "Bearer x"}}, ""},
		"a cookie":                  {"[{fromCookies: [s]}]", snapshot.Call{HTTP: true, Headers: map[string]string{"cookie": "a=b; s=c"}}, "cookie s"},
		"the end of another cookie": {"[{fromCookies: [s]}]", snapshot.Call{HTTP: true, Headers: map[string]string{"cookie": "as=c"}}, ""},
		"the second rule":           {"[{fromParams: [a]}, {fromParams: [b]}]", snapshot.Call{HTTP: true, Query: "b"}, "query parameter b"},
		"a connection":              {"[{issuer: a}]", snapshot.Call{}, ""},
		"any request":               {"[{issuer: a}]", snapshot.Call{HTTP: true, AnyRequest: true}, ""},
	} {
		guards := guarded(t, []map[string]string{{"app": "cart"}}, written[istiosecurityv1.RequestAuthentication](t, "shop", "tokens", "jwtRules: "+tt.rules))
		require.Len(t, guards, 1, name)
		ruling := guards[0].Decide(&tt.call)
		if tt.where == "" {
			assert.Empty(t, ruling.MayDeny, name)
			continue
		}
		require.Len(t, ruling.MayDeny, 1, name)
		assert.Contains(t, ruling.MayDeny[0].What, "the token in "+tt.where+",", name)
		assert.Equal(t, "tokens", ruling.MayDeny[0].Ref.Name)
	}
	asks := written[istiosecurityv1.AuthorizationPolicy](t, "shop", "asks", "rules: [{from: [{source: {requestPrincipals: ['*']}}]}]")
	reads := written[istiosecurityv1.RequestAuthentication](t, "shop", "tokens", "jwtRules: [{issuer: a}]")
	with := &snapshot.Call{HTTP: true, Headers: map[string]string{"authorization": "Bearer x"}}
	assert.Empty(t, guarded(t, []map[string]string{{"app": "cart"}}, asks)[0].Decide(with).MayAllow, "nothing reads it")
	assert.Len(t, guarded(t, []map[string]string{{"app": "cart"}}, asks, reads)[0].Decide(with).MayAllow, 1)
	other := written[istiosecurityv1.RequestAuthentication](t, "shop", "tokens", "selector: {matchLabels: {app: other}}, jwtRules: [{issuer: a}]")
	assert.Empty(t, guarded(t, []map[string]string{{"app": "cart"}}, other), "it is for other pods")
}
