package osm

import (
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// seesRequests follows OSM's choice of the protocol of a port: appProtocol, else the
// prefix of the name, else HTTP. A port named tcp, without a dash, is an HTTP port. OSM
// serves nothing on a port with an appProtocol that it does not know.
func seesRequests(p *discoveryv1.KubeServicePort) bool {
	switch strings.ToLower(p.AppProtocol) {
	case "":
		return (p.Protocol == "" || p.Protocol == "TCP") && !strings.HasPrefix(p.Name, "tcp-")
	case "http", "grpc":
		return true
	default:
		return false
	}
}
