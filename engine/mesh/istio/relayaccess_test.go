package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGatewaysBringNobodyAlong: with limited trust, callers of other members come with the
// identity of a gateway. A rule for callers of the mesh itself must not let them in.
func TestGatewaysBringNobodyAlong(t *testing.T) {
	t.Parallel()
	mesh := &snapshot.MeshPlan{
		Dialect: dialect, Cluster: "east", TrustDomain: "td", Limited: true,
		Gateways: []snapshot.GatewayPlan{{Identities: []string{"spiffe://td/ns/istio-system/sa/gateway"}}},
	}
	own := mesh.IdentityDomain()
	const gateway = "td/ns/istio-system/sa/gateway"
	for name, c := range map[string]struct {
		source snapshot.Source
		not    []string
	}{
		"any caller":            {snapshot.Source{Identities: []snapshot.Identity{{TrustDomain: own}}}, []string{gateway}},
		"any in its namespace":  {snapshot.Source{Identities: []snapshot.Identity{{TrustDomain: own, Namespace: "istio-system"}}}, []string{gateway}},
		"by its name":           {snapshot.Source{Identities: []snapshot.Identity{{TrustDomain: own, Namespace: "istio-system", ServiceAccount: "gateway"}}}, []string{gateway}},
		"its namespace":         {snapshot.Source{Namespaces: []string{"a", "istio-system"}}, []string{gateway}},
		"another account":       {snapshot.Source{Identities: []snapshot.Identity{{TrustDomain: own, Namespace: "istio-system", ServiceAccount: "a"}}}, nil},
		"another namespace":     {snapshot.Source{Namespaces: []string{"a"}}, nil},
		"both, and not its own": {snapshot.Source{Identities: []snapshot.Identity{{TrustDomain: own}}, Namespaces: []string{"a"}}, nil},
	} {
		rule := accessRule(&snapshot.EffectiveRule{Sources: []snapshot.Source{c.source}}, mesh)
		if assert.Len(t, rule.From, 1, name) {
			assert.ElementsMatch(t, c.not, rule.From[0].Source.NotPrincipals, name)
		}
	}
	mesh.Limited = false
	rule := accessRule(&snapshot.EffectiveRule{Sources: []snapshot.Source{{Identities: []snapshot.Identity{{TrustDomain: "td"}}}}}, mesh)
	assert.Empty(t, rule.From[0].Source.NotPrincipals, "gateways pass connections on")
}
