package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestPodPort(t *testing.T) {
	t.Parallel()
	service := &discoveryv1.KubeService{EndpointSubsets: []discoveryv1.EndpointSubset{
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
}
