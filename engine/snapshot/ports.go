package snapshot

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// PodPort is the port on which the pods of a service listen for one of its
// ports. Access is enforced there, so a wrong number opens or closes another
// port. Known is false if the target port is a name that no endpoint has; then
// the number is that of the service, which Kubernetes uses if there is no target
// port (kubernetes.io ServicePort.targetPort).
func PodPort(service *discoveryv1.KubeService, port discoveryv1.KubeServicePort) (number uint32, known bool) {
	if port.TargetPortNumber != 0 {
		return port.TargetPortNumber, true
	}
	for _, subset := range service.EndpointSubsets {
		for _, p := range subset.Ports {
			if p.Name == port.Name && p.Port != 0 {
				return p.Port, true
			}
		}
	}
	return port.Port, port.TargetPortName == ""
}

// PodPorts are the pods' ports for ports that a policy names, in the same order and each
// once. One that the service does not have is that of the pods.
func PodPorts(service *discoveryv1.KubeService, ports []uint32) []uint32 {
	var out []uint32
	for _, port := range ports {
		for _, p := range service.Ports {
			if p.Port == port {
				port, _ = PodPort(service, p)
				break
			}
		}
		if !slices.Contains(out, port) {
			out = append(out, port)
		}
	}
	return out
}
