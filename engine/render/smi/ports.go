package smi

import (
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// seesRequests follows OSM's protocol of a port: appProtocol, else what the name
// begins with, else HTTP. A port named tcp, without a dash, is one for HTTP. Of
// an appProtocol that it does not know it serves neither requests nor connections.
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
