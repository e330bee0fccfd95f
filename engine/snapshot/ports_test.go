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

// TestPodPorts: a policy on a port opens it on all pods, and no other.
func TestPodPorts(t *testing.T) {
	t.Parallel()
	part := func(http, admin uint32) discoveryv1.EndpointSubset {
		out := discoveryv1.EndpointSubset{}
		for name, port := range map[string]uint32{"http": http, "admin": admin} {
			if port != 0 {
				out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: name, Port: port})
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		parts []discoveryv1.EndpointSubset
		ports []uint32
		want  []uint32
	}{
		"none":                       {[]discoveryv1.EndpointSubset{part(8080, 9090)}, nil, nil},
		"all alike":                  {[]discoveryv1.EndpointSubset{part(8080, 9090)}, []uint32{80}, []uint32{8080}},
		"no endpoints":               {nil, []uint32{80, 81}, []uint32{80, 81}},
		"of the pods":                {[]discoveryv1.EndpointSubset{part(8080, 9090)}, []uint32{7000, 80}, []uint32{7000, 8080}},
		"two numbers":                {[]discoveryv1.EndpointSubset{part(8080, 9090), part(8081, 9090)}, []uint32{80}, []uint32{8080, 8081}},
		"one that is not allowed":    {[]discoveryv1.EndpointSubset{part(8080, 9090), part(9090, 9091)}, []uint32{80}, []uint32{8080}},
		"one that is allowed":        {[]discoveryv1.EndpointSubset{part(8080, 9090), part(9090, 9091)}, []uint32{80, 81}, []uint32{8080, 9090, 9091}},
		"none that could be opened":  {[]discoveryv1.EndpointSubset{part(8080, 9090), part(9090, 8080)}, []uint32{80}, []uint32{snapshot.NoPort}},
		"one that others lack":       {[]discoveryv1.EndpointSubset{part(8080, 0), part(0, 9090)}, []uint32{80}, []uint32{8080}},
		"two names of one pods' one": {[]discoveryv1.EndpointSubset{part(8080, 8080)}, []uint32{80}, []uint32{8080}},
	} {
		service := &discoveryv1.KubeService{
			WorkloadSelectorLabels: map[string]string{"app": "a"}, EndpointSubsets: c.parts,
			Ports: []discoveryv1.KubeServicePort{{Name: "http", Port: 80, TargetPortName: "web"}, {Name: "admin", Port: 81, TargetPortName: "admin"}},
		}
		assert.Equal(t, c.want, snapshot.PodPorts(service, c.ports), name)
	}
}
