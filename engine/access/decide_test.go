package access_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestObstacles(t *testing.T) {
	t.Parallel()
	request := access.Request{Method: "GET", Path: "/api/v1/users?x=y"}
	for name, tt := range map[string]struct {
		rule snapshot.EffectiveRule
		http bool
		want []access.Obstacle
	}{
		"none":                      {snapshot.EffectiveRule{}, true, nil},
		"method":                    {snapshot.EffectiveRule{Methods: []string{"POST", "GET"}}, true, nil},
		"another method":            {snapshot.EffectiveRule{Methods: []string{"POST"}}, true, []access.Obstacle{access.WrongMethod}},
		"any method":                {snapshot.EffectiveRule{Methods: []string{"*"}}, true, nil},
		"beginning":                 {snapshot.EffectiveRule{Paths: []string{"/api/*"}}, true, nil},
		"end":                       {snapshot.EffectiveRule{Paths: []string{"*/users"}}, true, nil},
		"template":                  {snapshot.EffectiveRule{Paths: []string{"/api/{*}/users"}}, true, nil},
		"template of one part":      {snapshot.EffectiveRule{Paths: []string{"/{*}/users"}}, true, []access.Obstacle{access.WrongPath}},
		"template of several parts": {snapshot.EffectiveRule{Paths: []string{"/{**}/users"}}, true, nil},
		"another path and port":     {snapshot.EffectiveRule{Paths: []string{"/other"}, PodPorts: []uint32{1}}, true, []access.Obstacle{access.WrongPath, access.WrongPort}},
		"port":                      {snapshot.EffectiveRule{PodPorts: []uint32{1, 9080}}, true, nil},
		"connections have no path":  {snapshot.EffectiveRule{Paths: []string{"*"}}, false, []access.Obstacle{access.WrongPath}},
	} {
		tt.rule.Anyone = true
		decision := access.Decide(nil, []snapshot.EffectiveRule{tt.rule}, &snapshot.Call{Method: request.Method, Path: request.PathOnly(), HTTP: tt.http, PodPort: 9080})
		assert.Equal(t, tt.want, decision.Obstacles, name)
		assert.Equal(t, len(tt.want) == 0, len(decision.By) > 0, name)
	}
}

func TestAnyRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule snapshot.EffectiveRule
		call snapshot.Call
		want []access.Obstacle
	}{
		"some method":                {snapshot.EffectiveRule{Methods: []string{"GET"}, Paths: []string{"/a"}}, snapshot.Call{HTTP: true}, nil},
		"connections have no method": {snapshot.EffectiveRule{Methods: []string{"GET"}}, snapshot.Call{}, []access.Obstacle{access.WrongMethod}},
		"any port":                   {snapshot.EffectiveRule{PodPorts: []uint32{1}}, snapshot.Call{HTTP: true}, nil},
		"another port":               {snapshot.EffectiveRule{PodPorts: []uint32{1}}, snapshot.Call{HTTP: true, PodPort: 2}, []access.Obstacle{access.WrongPort}},
	} {
		tt.rule.Anyone, tt.call.AnyRequest = true, true
		assert.Equal(t, tt.want, access.Decide(nil, []snapshot.EffectiveRule{tt.rule}, &tt.call).Obstacles, name)
	}
}
