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

// TestProtocol: a federated port is what Istio would take the Service's port for.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		port discoveryv1.KubeServicePort
		want string
	}{
		{discoveryv1.KubeServicePort{Name: "http", Protocol: "TCP"}, "HTTP"},
		{discoveryv1.KubeServicePort{Name: "http-web", Protocol: "TCP"}, "HTTP"},
		{discoveryv1.KubeServicePort{Name: "HTTP2", Protocol: "TCP"}, "HTTP2"},
		{discoveryv1.KubeServicePort{Name: "grpc-web", Protocol: "TCP"}, "GRPC-Web"},
		{discoveryv1.KubeServicePort{Name: "grpc-web-shop", Protocol: "TCP"}, "GRPC-Web"},
		{discoveryv1.KubeServicePort{Name: "grpc-shop", Protocol: "TCP"}, "GRPC"},
		{discoveryv1.KubeServicePort{Name: "grpc-websocket", Protocol: "TCP"}, "GRPC-Web"},
		{discoveryv1.KubeServicePort{Name: "http", AppProtocol: "tcp", Protocol: "TCP"}, "TCP"},
		{discoveryv1.KubeServicePort{AppProtocol: "kubernetes.io/h2c", Protocol: "TCP"}, "HTTP2"},
		{discoveryv1.KubeServicePort{AppProtocol: "example.com/own", Name: "http", Protocol: "TCP"}, ""},
		{discoveryv1.KubeServicePort{Name: "http", Protocol: "UDP"}, "UDP"},
		{discoveryv1.KubeServicePort{Name: "tcp", Protocol: "TCP"}, "TCP"},
		{discoveryv1.KubeServicePort{Name: "db", Port: 3306, Protocol: "TCP"}, "TCP"},
		{discoveryv1.KubeServicePort{Name: "db", Port: 5432, Protocol: "TCP"}, ""},
		{discoveryv1.KubeServicePort{Port: 8080, Protocol: "TCP"}, ""},
		{discoveryv1.KubeServicePort{Port: 8080}, ""},
	} {
		assert.Equal(t, tt.want, protocol(tt.port), "%+v", tt.port)
	}
	assert.Equal(t, "TCP", portName(discoveryv1.KubeServicePort{Port: 8080}), "a name is needed even for a single port")
}
