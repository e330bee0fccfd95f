package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestPodPort(t *testing.T) {
	t.Parallel()
	service := &discoveryv1.KubeService{WorkloadSelectorLabels: map[string]string{"app": "a"}, EndpointSubsets: []discoveryv1.EndpointSubset{
		{Ports: []discoveryv1.EndpointPort{{Name: "http"}, {Name: "grpc", Port: 9000}}},
		{Ports: []discoveryv1.EndpointPort{{Name: "http", Port: 8080}}},
	}}
	for name, tt := range map[string]struct {
		port   discoveryv1.KubeServicePort
		number uint32
		known  bool
	}{
		"a number":                 {discoveryv1.KubeServicePort{Name: "http", Port: 80, TargetPortNumber: 8000}, 8000, true},
		"a name":                   {discoveryv1.KubeServicePort{Name: "http", Port: 80, TargetPortName: "web"}, 8080, true},
		"a name without endpoints": {discoveryv1.KubeServicePort{Name: "admin", Port: 81, TargetPortName: "admin"}, 81, false},
		"none":                     {discoveryv1.KubeServicePort{Name: "other", Port: 82}, 82, true},
	} {
		number, known := snapshot.PodPort(service, tt.port)
		assert.Equal(t, tt.number, number, name)
		assert.Equal(t, tt.known, known, name)
	}
	service.WorkloadSelectorLabels = nil // then EndpointSlices decide
	number, known := snapshot.PodPort(service, discoveryv1.KubeServicePort{Name: "http", Port: 80, TargetPortNumber: 8000})
	assert.Equal(t, uint32(8080), number)
	assert.True(t, known)
}

// TestPortProtocol: a federated port is what Istio would take the Service's port for.
func TestPortProtocol(t *testing.T) {
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
		assert.Equal(t, tt.want, snapshot.PortProtocol(tt.port), "%+v", tt.port)
	}
}
