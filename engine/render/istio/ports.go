package istio

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// sctp is a protocol of Kubernetes that Istio does not have.
const sctp = "SCTP"

const udp = "UDP"

// entryPort reports whether a ServiceEntry can have a port of a Service: its port
// numbers are unique, and gateways pass TCP but not UDP.
func entryPort(service *discoveryv1.KubeService, p discoveryv1.KubeServicePort) bool {
	if p.Protocol == udp {
		return !slices.ContainsFunc(service.Ports, func(o discoveryv1.KubeServicePort) bool {
			return o.Port == p.Port && o.Protocol != udp && o.Protocol != sctp
		})
	}
	return p.Protocol != sctp
}

// servicePorts renders a Service's ports for a ServiceEntry.
func servicePorts(service *discoveryv1.KubeService) []*networking.ServicePort {
	out := make([]*networking.ServicePort, 0, len(service.Ports))
	for _, p := range service.Ports {
		if !entryPort(service, p) {
			continue
		}
		out = append(out, &networking.ServicePort{Number: p.Port, Name: portName(p), Protocol: protocol(p)})
	}
	return out
}

// portName names a port: Kubernetes permits a single port without a name, Istio does
// not.
func portName(p discoveryv1.KubeServicePort) string {
	if p.Name != "" {
		return p.Name
	}
	if known := protocol(p); known != "" {
		return known
	}
	return "TCP"
}

// endpointPortName is the name of an endpoint's port in the ServiceEntry; false if the
// ServiceEntry has no such port, which Istio would reject.
func endpointPortName(service *discoveryv1.KubeService, p discoveryv1.EndpointPort) (string, bool) {
	for _, s := range service.Ports {
		if s.Name == p.Name {
			return portName(s), entryPort(service, s)
		}
	}
	return "", false
}

// protocols are the names that Istio accepts
// (istio.io/latest/docs/ops/configuration/traffic-management/protocol-selection).
var protocols = map[string]string{
	"tcp": "TCP", "udp": "UDP", "http": "HTTP", "http2": "HTTP2", "https": "HTTPS", "tls": "TLS",
	"grpc": "GRPC", "grpc-web": "GRPC-Web", "mongo": "Mongo", "mysql": "MySQL", "redis": "Redis",
	"kubernetes.io/h2c": "HTTP2", "kubernetes.io/ws": "HTTP", "kubernetes.io/wss": "HTTPS",
}

// serverFirst are ports on which the server sends first: sniffing them would hang.
var serverFirst = map[uint32]bool{25: true, 53: true, 3306: true, 27017: true}

// protocol chooses like Istio does for a Service: the appProtocol, else the prefix of
// the port's name, else none, and proxies detect it. If it were called TCP, the port
// would lose its HTTP routes in other clusters only.
func protocol(p discoveryv1.KubeServicePort) string {
	if p.Protocol == udp {
		return udp
	}
	name := strings.ToLower(cmp.Or(p.AppProtocol, p.Name))
	if strings.HasPrefix(name, "grpc-web") {
		return "GRPC-Web"
	}
	if known, ok := protocols[name]; ok {
		return known
	}
	name, _, _ = strings.Cut(name, "-")
	if known, ok := protocols[name]; ok {
		return known
	}
	if serverFirst[p.Port] {
		return "TCP"
	}
	return ""
}
