package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestPrincipal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		id   snapshot.Identity
		want string
	}{
		{snapshot.Identity{TrustDomain: "east", Namespace: "shop", ServiceAccount: "web"}, "east/ns/shop/sa/web"},
		{snapshot.Identity{TrustDomain: "east", Namespace: "shop"}, "east/ns/shop/sa/*"},
		{snapshot.Identity{TrustDomain: "east"}, "east/ns/*"},
	} {
		assert.Equal(t, tt.want, principal(tt.id.TrustDomain, tt.id))
	}
}

func TestPortName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "TCP", portName(discoveryv1.KubeServicePort{Port: 8080}), "a name is needed even for a single port")
}
