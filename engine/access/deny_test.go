package access_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestDenials: what is denied is refused, whatever allows it, and nothing else is.
func TestDenials(t *testing.T) {
	t.Parallel()
	web := &snapshot.Identity{TrustDomain: "east", Namespace: "front", ServiceAccount: "web"}
	toWeb := []snapshot.Source{{Identities: []snapshot.Identity{*web}}}
	get := snapshot.Call{HTTP: true, Method: "GET", Path: "/a", PodPort: 9080, Caller: web}
	connection := snapshot.Call{PodPort: 9080, Caller: web}
	all := snapshot.Call{HTTP: true, AnyRequest: true, PodPort: 9080, Caller: web}
	anonymous := get
	anonymous.Caller = nil
	for name, tt := range map[string]struct {
		denial snapshot.EffectiveRule
		call   snapshot.Call
		// allows are what lets calls in; any call if there is none.
		allows []snapshot.EffectiveRule
		want   bool
	}{
		"anyone":                         {snapshot.EffectiveRule{Anyone: true}, get, nil, true},
		"anyone without identity":        {snapshot.EffectiveRule{Anyone: true}, anonymous, nil, true},
		"the caller":                     {snapshot.EffectiveRule{Sources: toWeb}, get, nil, true},
		"the caller without identity":    {snapshot.EffectiveRule{Sources: toWeb}, anonymous, nil, false},
		"nobody":                         {snapshot.EffectiveRule{}, get, nil, false},
		"another namespace":              {snapshot.EffectiveRule{Sources: []snapshot.Source{{Namespaces: []string{"back"}}}}, get, nil, false},
		"the namespace":                  {snapshot.EffectiveRule{Sources: []snapshot.Source{{Namespaces: []string{"front"}}}}, get, nil, true},
		"the method":                     {snapshot.EffectiveRule{Anyone: true, Methods: []string{"POST", "GET"}}, get, nil, true},
		"another method":                 {snapshot.EffectiveRule{Anyone: true, Methods: []string{"POST"}}, get, nil, false},
		"the method on another path":     {snapshot.EffectiveRule{Anyone: true, Methods: []string{"GET"}, Paths: []string{"/b*"}}, get, nil, false},
		"another port":                   {snapshot.EffectiveRule{Anyone: true, PodPorts: []uint32{1}}, get, nil, false},
		"a connection, by method":        {snapshot.EffectiveRule{Anyone: true, Methods: []string{"POST"}}, connection, nil, true},
		"some of all requests":           {snapshot.EffectiveRule{Anyone: true, Methods: []string{"GET"}}, all, nil, false},
		"all requests":                   {snapshot.EffectiveRule{Anyone: true, Methods: []string{"*"}, Paths: []string{"/*"}}, all, nil, true},
		"all that is allowed":            {snapshot.EffectiveRule{Anyone: true, Methods: []string{"GET"}}, all, []snapshot.EffectiveRule{{Anyone: true, Methods: []string{"GET"}, Paths: []string{"/a"}}}, true},
		"some of what is allowed":        {snapshot.EffectiveRule{Anyone: true, Methods: []string{"GET"}}, all, []snapshot.EffectiveRule{{Anyone: true, Methods: []string{"GET", "PUT"}}}, false},
		"one of two that are allowed":    {snapshot.EffectiveRule{Anyone: true, Methods: []string{"GET"}}, all, []snapshot.EffectiveRule{{Anyone: true, Methods: []string{"GET"}}, {Anyone: true, Methods: []string{"PUT"}}}, false},
		"all on some port":               {snapshot.EffectiveRule{Anyone: true, PodPorts: []uint32{9080}}, all, nil, true},
		"all that others are allowed":    {snapshot.EffectiveRule{Sources: toWeb, Methods: []string{"GET"}}, all, []snapshot.EffectiveRule{{Anyone: true, Methods: []string{"GET"}}, {Sources: []snapshot.Source{{Namespaces: []string{"back"}}}}}, true},
		"a port of all, but another one": {snapshot.EffectiveRule{Anyone: true, PodPorts: []uint32{1}}, all, nil, false},
	} {
		if tt.allows == nil {
			tt.allows = []snapshot.EffectiveRule{{Anyone: true}}
		}
		tt.denial.Policy.Name = "denial"
		got := access.Decision{}.Deny(&snapshot.MeshPlan{}, []snapshot.EffectiveRule{tt.denial}, tt.allows, &tt.call)
		assert.Equal(t, tt.want, len(got.Denied) > 0, name)
		assert.Equal(t, tt.want, got.Denier != nil, name)
	}
}

// TestDenialsOfOtherMembers: with limited trust, pods see no callers of other members, whose gateways do.
func TestDenialsOfOtherMembers(t *testing.T) {
	t.Parallel()
	own, other := &snapshot.MeshPlan{Ref: snapshot.Ref{Name: "own"}, Limited: true}, &snapshot.MeshPlan{Ref: snapshot.Ref{Name: "other"}}
	everybody, some, relayed := snapshot.EffectiveRule{Anyone: true}, snapshot.EffectiveRule{Methods: []string{"GET"}}, snapshot.EffectiveRule{Methods: []string{"PUT"}}
	d := &snapshot.DestinationPlan{Mesh: own, Denials: &snapshot.Denials{Rules: []snapshot.EffectiveRule{some, everybody}, Relayed: []snapshot.EffectiveRule{relayed}}}
	assert.Equal(t, []snapshot.EffectiveRule{some, everybody}, access.DenialsFor(d, own))
	assert.Equal(t, []snapshot.EffectiveRule{everybody, relayed}, access.DenialsFor(d, other))
	own.Limited = false
	assert.Equal(t, []snapshot.EffectiveRule{some, everybody}, access.DenialsFor(d, other))
	assert.Empty(t, access.DenialsFor(&snapshot.DestinationPlan{Mesh: own}, own))
}
