package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// servicePorts renders a Service's ports for a ServiceEntry.
func servicePorts(service *discoveryv1.KubeService) []*networking.ServicePort {
	out := make([]*networking.ServicePort, 0, len(service.Ports))
	for _, p := range service.Ports {
		out = append(out, &networking.ServicePort{Number: p.Port, Name: portName(p), Protocol: protocol(p)})
	}
	return out
}

// portName: a single port need not have a name in Kubernetes, but must in Istio.
func portName(p discoveryv1.KubeServicePort) string {
	if p.Name != "" {
		return p.Name
	}
	return protocol(p)
}

// endpointPortName is what the ServiceEntry calls an endpoint's port.
func endpointPortName(service *discoveryv1.KubeService, p discoveryv1.EndpointPort) string {
	for _, s := range service.Ports {
		if s.Name == p.Name {
			return portName(s)
		}
	}
	return p.Name
}

// protocols are the names by which Istio knows protocols
// (istio.io/latest/docs/ops/configuration/traffic-management/protocol-selection).
var protocols = map[string]string{
	"tcp": "TCP", "udp": "UDP", "http": "HTTP", "http2": "HTTP2", "https": "HTTPS", "tls": "TLS",
	"grpc": "GRPC", "grpc-web": "GRPC-Web", "mongo": "Mongo", "mysql": "MySQL", "redis": "Redis",
	"kubernetes.io/h2c": "HTTP2", "kubernetes.io/ws": "HTTP", "kubernetes.io/wss": "HTTPS",
}

// serverFirst are ports on which the server speaks first: sniffing them would hang.
var serverFirst = map[uint32]bool{25: true, 53: true, 3306: true, 27017: true}

// protocol chooses as Istio does for a Service: the appProtocol, else the
// beginning of the port's name, else what Kubernetes says.
func protocol(p discoveryv1.KubeServicePort) string {
	if p.Protocol == "UDP" {
		return "UDP"
	}
	if known, ok := protocols[strings.ToLower(p.AppProtocol)]; ok {
		return known
	}
	name := strings.ToLower(p.Name)
	if name != "grpc-web" && !strings.HasPrefix(name, "grpc-web-") {
		name, _, _ = strings.Cut(name, "-")
	} else {
		name = "grpc-web"
	}
	if known, ok := protocols[name]; ok {
		return known
	}
	if serverFirst[p.Port] || p.Protocol == "" {
		return "TCP"
	}
	return p.Protocol
}
