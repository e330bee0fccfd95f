package proof

import (
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// traffic is the protocol of a port for Istio, by its name or appProtocol
// (istio.io/latest/docs/ops/configuration/traffic-management/protocol-selection).
type traffic string

const (
	requests    traffic = "HTTP"
	connections traffic = "TCP"
	// either is detected for each connection.
	either    traffic = "HTTP or TCP"
	datagrams traffic = "UDP"
)

// take reports whether a proxy handles requests, or connections, on such a port.
func (t traffic) take(what traffic) bool { return t == what || t == either && what != datagrams }

func trafficOf(p discoveryv1.KubeServicePort) traffic {
	name := p.AppProtocol
	if name == "" {
		name, _, _ = strings.Cut(p.Name, "-")
	}
	switch {
	case p.Protocol == "UDP":
		return datagrams
	case slices.Contains([]string{"http", "http2", "grpc"}, name):
		return requests
	case slices.Contains([]string{"tcp", "tls", "https", "mongo", "mysql", "redis"}, name):
		return connections
	default:
		return either
	}
}

// portsFor are the ports of a service on which proxies handle requests, or connections.
func portsFor(d *snapshot.DestinationPlan, what traffic) []uint32 {
	var out []uint32
	for _, p := range d.Destination.Spec.KubeService.Ports {
		if trafficOf(p).take(what) {
			out = append(out, p.Port)
		}
	}
	return out
}

// ports are those that proxies know.
func ports(d *snapshot.DestinationPlan) []uint32 {
	var out []uint32
	for _, p := range d.Destination.Spec.KubeService.Ports {
		if trafficOf(p) != datagrams {
			out = append(out, p.Port)
		}
	}
	return out
}

// podPort is the port on which the pods listen.
func podPort(d *snapshot.DestinationPlan, port uint32) uint32 {
	service := d.Destination.Spec.KubeService
	for _, p := range service.Ports {
		if p.Port != port {
			continue
		}
		if p.TargetPortNumber != 0 {
			return p.TargetPortNumber
		}
		for _, part := range service.EndpointSubsets {
			for _, e := range part.Ports {
				if e.Name == p.Name {
					return e.Port
				}
			}
		}
	}
	return port
}
