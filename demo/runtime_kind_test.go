package demo

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestKindIsServed: how meshctl is installed in kind clusters, and how they are registered, directly and with an agent that dials.
func TestKindIsServed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relay                  bool
		install, first, second []string
	}{
		"directly": {false, []string{"--image", "meshctl:x"}, []string{"--agent-image", "meshctl:x"},
			[]string{"--agent-image", "meshctl:x", "--api-server-address", "meshctl-cluster-2-control-plane:6443"}},
		"relay": {true, []string{"--image", "meshctl:x", "--relay", "--relay-service-type", "NodePort"}, []string{"--agent-image", "meshctl:x"},
			[]string{"--agent-image", "meshctl:x", "--relay"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &kindRuntime{Options: Options{Relay: c.relay}, meshctl: "meshctl:x"}
			assert.Equal(t, c.install, r.installFlags())
			assert.Equal(t, c.first, r.registerFlags("cluster-1", true, false))
			assert.Equal(t, c.second, r.registerFlags("cluster-2", false, true))
		})
	}
}
