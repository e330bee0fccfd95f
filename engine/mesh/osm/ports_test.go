package osm

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

func TestSeesRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, appProtocol, protocol string
		want                        bool
	}{
		{name: "", want: true},
		{name: "http", protocol: "TCP", want: true},
		{name: "grpc-web", want: true},
		{name: "tcp", want: true},
		{name: "mysql", want: true},
		{name: "tcp-feed"},
		{name: "tcp-server-first-db"},
		{name: "tcp-feed", appProtocol: "HTTP", want: true},
		{name: "http", appProtocol: "tcp"},
		{name: "http", appProtocol: "tcp-server-first"},
		{name: "http", appProtocol: "https"},
		{name: "http", appProtocol: "kubernetes.io/h2c"},
		{name: "dns", protocol: "UDP"},
	} {
		assert.Equal(t, c.want, seesRequests(&discoveryv1.KubeServicePort{Name: c.name, AppProtocol: c.appProtocol, Protocol: c.protocol}), "%+v", c)
	}
}
