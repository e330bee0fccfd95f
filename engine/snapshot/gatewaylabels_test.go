package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGatewayLabels: what labels say, and that kinds of mesh without such labels have no gateways by label.
func TestGatewayLabels(t *testing.T) {
	t.Parallel()
	of := &snapshot.GatewayLabels{Role: "role", EastWest: "east-west", Ingress: []string{"in", "door"}, Egress: []string{"out"}, Deployed: "deployed"}
	for name, c := range map[string]struct {
		labels                  map[string]string
		eastWest, enters, match bool
	}{
		"none":      {},
		"other":     {labels: map[string]string{"role": "app"}},
		"east-west": {labels: map[string]string{"role": "east-west"}, eastWest: true, enters: true, match: true},
		"usual":     {labels: map[string]string{"role": "in"}, enters: true, match: true},
		"also":      {labels: map[string]string{"role": "door"}, enters: true, match: true},
		"egress":    {labels: map[string]string{"role": "out"}, match: true},
		"deployed":  {labels: map[string]string{"deployed": "mine"}, match: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.eastWest, of.IsEastWest(c.labels))
			assert.Equal(t, c.enters, of.Enters(c.labels))
			assert.Equal(t, c.match, of.Match(c.labels))
			var nobody *snapshot.GatewayLabels
			assert.False(t, nobody.IsEastWest(c.labels) || nobody.Enters(c.labels) || nobody.Match(c.labels))
		})
	}
}
