package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
)

// TestWhatZtunnelMakesOfPolicies follows Istio's ambient.convertAuthorizationPolicy and handleRule.
func TestWhatZtunnelMakesOfPolicies(t *testing.T) {
	t.Parallel()
	to := func(o *security.Operation) *security.Rule {
		return &security.Rule{To: []*security.Rule_To{{Operation: o}}}
	}
	from := func(s *security.Source) *security.Rule {
		return &security.Rule{From: []*security.Rule_From{{Source: s}}}
	}
	when := func(key string) *security.Rule {
		return &security.Rule{When: []*security.Condition{{Key: key, Values: []string{"a"}}}}
	}
	const (
		nobody = "ztunnel leaves such rules out, so that it lets nobody in to pods in ambient mode"
		fewer  = "ztunnel leaves such rules out, so that it lets in fewer callers to pods in ambient mode"
		more   = "ztunnel denies by what else they say, and so more than they say"
	)
	callers := from(&security.Source{Principals: []string{"a"}, Namespaces: []string{"b"}, IpBlocks: []string{"10.0.0.0/8"}, NotPrincipals: []string{"c"}})
	for name, c := range map[string]struct {
		action security.AuthorizationPolicy_Action
		rules  []*security.Rule
		want   string
	}{
		"no rules":                   {},
		"a rule for all":             {rules: []*security.Rule{{}}},
		"callers":                    {rules: []*security.Rule{callers}},
		"ports":                      {rules: []*security.Rule{to(&security.Operation{Ports: []string{"80"}, NotPorts: []string{"81"}})}},
		"conditions on connections":  {rules: []*security.Rule{when("source.ip"), when("source.namespace"), when("source.principal"), when("destination.ip"), when("destination.port")}},
		"methods":                    {rules: []*security.Rule{to(&security.Operation{Methods: []string{"GET"}})}, want: "has methods in its rules: " + nobody},
		"paths beside callers":       {rules: []*security.Rule{to(&security.Operation{NotPaths: []string{"/a"}}), callers}, want: "has notPaths in its rules: " + fewer},
		"hosts":                      {rules: []*security.Rule{to(&security.Operation{Hosts: []string{"a"}, NotHosts: []string{"b"}})}, want: "has hosts, notHosts in its rules: " + nobody},
		"tokens":                     {rules: []*security.Rule{from(&security.Source{RequestPrincipals: []string{"*"}})}, want: "has requestPrincipals in its rules: " + nobody},
		"remote addresses":           {rules: []*security.Rule{from(&security.Source{RemoteIpBlocks: []string{"10.0.0.0/8"}})}, want: "has remoteIpBlocks in its rules: " + nobody},
		"a header":                   {rules: []*security.Rule{when("request.headers[a]")}, want: "has request.headers[a] in its rules: " + nobody},
		"SNI, which is no attribute": {rules: []*security.Rule{when("connection.sni")}, want: "has connection.sni in its rules: " + nobody},
		"denies callers":             {action: security.AuthorizationPolicy_DENY, rules: []*security.Rule{callers}},
		"denies methods":             {action: security.AuthorizationPolicy_DENY, rules: []*security.Rule{to(&security.Operation{NotMethods: []string{"GET"}}), callers}, want: "has notMethods in its rules: " + more},
		"asks":                       {action: security.AuthorizationPolicy_CUSTOM, rules: []*security.Rule{{}}, want: "asks an external authorizer, which ztunnel does not: it has no effect on pods in ambient mode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, atZtunnel(&istiosecurityv1.AuthorizationPolicy{Spec: security.AuthorizationPolicy{Action: c.action, Rules: c.rules}}))
		})
	}
}
