package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func accessRuleOf(name, trustDomain string, paths ...string) *snapshot.AccessRule {
	return &snapshot.AccessRule{
		Origin:  snapshot.Origin{Ref: snapshot.Ref{Kind: snapshot.AccessPolicy, Name: name}},
		Sources: []snapshot.Source{{Identities: []snapshot.Identity{{TrustDomain: trustDomain}}}}, Paths: paths,
	}
}

// TestOpenness: a Destination lets everybody in because of one thing, or the rules decide.
func TestOpenness(t *testing.T) {
	t.Parallel()
	deny := &snapshot.Origin{Ref: snapshot.Ref{Kind: snapshot.VirtualMesh, Name: "vm"}}
	gateway := []snapshot.OpenGateway{{Service: snapshot.Ref{Kind: snapshot.Service, Name: "shop"}}}
	rules := []*snapshot.AccessRule{accessRuleOf("a", "x")}
	for name, tt := range map[string]struct {
		mesh  *snapshot.MeshPlan
		rules []*snapshot.AccessRule
		want  snapshot.Openness
	}{
		"unknown mesh":           {nil, nil, snapshot.OpenByDefault},
		"unknown mesh, policies": {nil, rules, snapshot.OpenNot},
		"default":                {&snapshot.MeshPlan{}, nil, snapshot.OpenByDefault},
		"policies":               {&snapshot.MeshPlan{}, rules, snapshot.OpenNot},
		"denied by default":      {&snapshot.MeshPlan{DenyByDefault: deny}, nil, snapshot.OpenNot},
		"gateway":                {&snapshot.MeshPlan{DenyByDefault: deny, OpenGateways: gateway}, rules, snapshot.OpenAsGateway},
		"mesh":                   {&snapshot.MeshPlan{Open: true}, rules, snapshot.OpenByMesh},
	} {
		d := &snapshot.DestinationPlan{Mesh: tt.mesh, Access: tt.rules, Destination: &discoveryv1.Destination{}}
		d.Destination.Spec.KubeService = &discoveryv1.KubeService{}
		d.Destination.Spec.KubeService.Ref.Name = "shop"
		d.Callers = callersOf(d, nil)
		assert.Equal(t, tt.want, d.Open(), name)
		if d.Callers != nil {
			assert.Len(t, d.Callers.Rules, len(tt.rules), name)
		}
	}
}

// TestRelayedRules: callers of other members are let in with the same conditions, or not at all.
func TestRelayedRules(t *testing.T) {
	t.Parallel()
	mesh := &snapshot.MeshPlan{Limited: true, TrustDomain: "x", Cluster: "east"}
	own, other := mesh.IdentityDomain(), (&snapshot.MeshPlan{Limited: true, TrustDomain: "x", Cluster: "west"}).IdentityDomain()
	for name, tt := range map[string]struct {
		rules      []*snapshot.AccessRule
		relayed    []string
		notRelayed []string
	}{
		"own callers":             {[]*snapshot.AccessRule{accessRuleOf("a", own)}, nil, nil},
		"a trust domain":          {[]*snapshot.AccessRule{accessRuleOf("a", "x")}, nil, nil},
		"others":                  {[]*snapshot.AccessRule{accessRuleOf("a", own, "/a"), accessRuleOf("b", other, "/b")}, []string{"b"}, nil},
		"others, same conditions": {[]*snapshot.AccessRule{accessRuleOf("a", other, "/a"), accessRuleOf("b", other, "/a")}, []string{"a", "b"}, nil},
		"others, different ones":  {[]*snapshot.AccessRule{accessRuleOf("a", other, "/a"), accessRuleOf("b", other), accessRuleOf("c", other, "/c")}, []string{"b"}, []string{"a", "c"}},
	} {
		d := &snapshot.DestinationPlan{Mesh: mesh, Access: tt.rules, Destination: &discoveryv1.Destination{}}
		d.Destination.Spec.KubeService = &discoveryv1.KubeService{}
		got := callersOf(d, nil)
		var relayed, notRelayed []string
		for _, rule := range got.Relayed {
			relayed = append(relayed, rule.Policy.Name)
		}
		for _, ref := range got.NotRelayed {
			notRelayed = append(notRelayed, ref.Name)
		}
		assert.Equal(t, tt.relayed, relayed, name)
		assert.Equal(t, tt.notRelayed, notRelayed, name)
		assert.Len(t, got.Rules, len(tt.rules), name)
	}
}

// TestUnidentifiedCallers are in the answer where rules decide, and nowhere else.
func TestUnidentifiedCallers(t *testing.T) {
	t.Parallel()
	mesh := &snapshot.MeshPlan{Dialect: &snapshot.Dialect{SPIFFE: true}, Ref: snapshot.Ref{Kind: snapshot.Mesh, Name: "east"}}
	plain := snapshot.WithOrigin[networkingv1.TLSMode]{Value: networkingv1.TLSModeDisable}
	d := &snapshot.DestinationPlan{Mesh: mesh, Destination: &discoveryv1.Destination{}, Views: []*snapshot.View{{Mesh: mesh, TLS: &plain}}}
	assert.Nil(t, callersOf(d, nil))
	d.Access = []*snapshot.AccessRule{accessRuleOf("a", "x")}
	d.Callers = callersOf(d, nil)
	assert.Equal(t, []snapshot.UnidentifiedCallers{{Mesh: mesh.Ref, TLS: plain}}, d.Callers.Unidentified)
	callers, requires := unidentifiedCallers(d)
	assert.Len(t, callers, 1)
	assert.Equal(t, "a", requires.Name)
	d.Access[0].Anyone = true
	callers, _ = unidentifiedCallers(d)
	assert.Empty(t, callers, "no policy asks for an identity")
}
