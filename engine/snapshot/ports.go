package snapshot

import (
	"cmp"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// PodPort is the port on which the pods of a service listen for one of its
// ports. Access is enforced there, so a wrong number opens or closes another
// port. Known is false if the target port is a name that no endpoint has; then
// the number is that of the service, which Kubernetes uses if there is no target
// port (kubernetes.io ServicePort.targetPort). Where pods give a name to different ports, it is the first one; see PodPorts.
func PodPort(service *discoveryv1.KubeService, port discoveryv1.KubeServicePort) (number uint32, known bool) {
	// Without a selector, EndpointSlices are all that says it.
	if port.TargetPortNumber != 0 && len(service.WorkloadSelectorLabels) > 0 {
		return port.TargetPortNumber, true
	}
	for i := range service.EndpointSubsets {
		if number := portNamed(&service.EndpointSubsets[i], port.Name); number != 0 {
			return number, true
		}
	}
	return cmp.Or(port.TargetPortNumber, port.Port), port.TargetPortName == ""
}

// portNamed is the port of endpoints with the name of a port of their service; 0 if they have none.
func portNamed(part *discoveryv1.EndpointSubset, name string) uint32 {
	for _, p := range part.Ports {
		if p.Name == name && p.Port != 0 {
			return p.Port
		}
	}
	return 0
}

// SubsetPort is where endpoints of a service listen for one of its ports; false if they do not serve it, as pods whose containers
// have no port of the name that the service has as its target. Port 0 is any.
func SubsetPort(service *discoveryv1.KubeService, part *discoveryv1.EndpointSubset, port uint32) (number uint32, serves bool) {
	for _, p := range service.Ports {
		if port == 0 || p.Port != port || p.Protocol == "UDP" {
			continue
		}
		if number := portNamed(part, p.Name); number != 0 {
			return number, true
		}
		if p.TargetPortName != "" || len(service.WorkloadSelectorLabels) == 0 {
			return 0, false
		}
		return cmp.Or(p.TargetPortNumber, p.Port), true
	}
	return port, true
}

// NoPort in a list of ports says that none is meant, as an empty list means all.
const NoPort = 0

// PodPorts are the pods' ports for ports that a policy names, in the same order and each
// once. One that the service does not have is that of the pods. Where pods listen on different ports for one, it is each of them,
// but for those on which other pods listen for a port that the policy does not name: access holds for all pods alike. It is NoPort if
// that leaves none.
func PodPorts(service *discoveryv1.KubeService, ports []uint32) []uint32 {
	var out []uint32
	for _, port := range ports {
		at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port })
		if at < 0 {
			if !slices.Contains(out, port) {
				out = append(out, port)
			}
			continue
		}
		for _, number := range PodNumbers(service, service.Ports[at]) {
			if TakenBy(service, service.Ports[at], number, ports) == 0 && !slices.Contains(out, number) {
				out = append(out, number)
			}
		}
	}
	if len(ports) > 0 && len(out) == 0 {
		return []uint32{NoPort}
	}
	return out
}

// DeniedPorts are the pods' ports for ports that a policy denies, ascending: all on which some pods listen for one of them, also if
// others listen there for another port.
func DeniedPorts(service *discoveryv1.KubeService, ports []uint32) []uint32 {
	var out []uint32
	for _, port := range ports {
		at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port })
		if at < 0 {
			out = append(out, port)
			continue
		}
		out = append(out, PodNumbers(service, service.Ports[at])...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PodNumbers are where pods listen for a port of their service, the first one as PodPort has it.
func PodNumbers(service *discoveryv1.KubeService, port discoveryv1.KubeServicePort) []uint32 {
	first, _ := PodPort(service, port)
	out := []uint32{first}
	for i := range service.EndpointSubsets {
		if number := portNamed(&service.EndpointSubsets[i], port.Name); number != 0 && !slices.Contains(out, number) {
			out = append(out, number)
		}
	}
	return out
}

// TakenBy is another port of a service, not among some, for which pods listen where others do for a port; 0 if there is none.
func TakenBy(service *discoveryv1.KubeService, port discoveryv1.KubeServicePort, number uint32, among []uint32) uint32 {
	for i := range service.EndpointSubsets {
		part := &service.EndpointSubsets[i]
		if portNamed(part, port.Name) == number {
			continue
		}
		for _, other := range service.Ports {
			if other.Name != port.Name && portNamed(part, other.Name) == number && !slices.Contains(among, other.Port) {
				return other.Port
			}
		}
	}
	return 0
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

// PortProtocol is the protocol of a Service's port, chosen like Istio does: the appProtocol,
// else the prefix of the port's name, else none, and proxies detect it. If it were called TCP,
// the port would lose its HTTP routes in other clusters only.
func PortProtocol(p discoveryv1.KubeServicePort) string {
	if p.Protocol == "UDP" {
		return "UDP"
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

// IsHTTPProtocol reports whether proxies see requests in a protocol; where they detect it, that is taken for granted.
func IsHTTPProtocol(name string) bool {
	switch strings.ToUpper(name) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "":
		return true
	}
	return false
}

// IsHTTP reports whether proxies of a mesh see requests on a port of a service, and not only connections. The dialect is nil if
// the mesh is not known.
func (d *Dialect) IsHTTP(p *discoveryv1.KubeServicePort) bool {
	switch {
	case p.Protocol != "" && p.Protocol != "TCP":
		return false
	case d != nil && d.SeesRequests != nil:
		return d.SeesRequests(p)
	}
	return IsHTTPProtocol(PortProtocol(*p))
}
