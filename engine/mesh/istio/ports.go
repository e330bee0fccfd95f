package istio

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sctp is a protocol of Kubernetes that Istio does not have.
const sctp = "SCTP"

// udp is a protocol of Kubernetes that has no routes.
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
		out = append(out, &networking.ServicePort{Number: p.Port, Name: portName(p), Protocol: snapshot.PortProtocol(p)})
	}
	return out
}

// portName names a port: Kubernetes permits a single port without a name, Istio does
// not.
func portName(p discoveryv1.KubeServicePort) string {
	if p.Name != "" {
		return p.Name
	}
	if known := snapshot.PortProtocol(p); known != "" {
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
