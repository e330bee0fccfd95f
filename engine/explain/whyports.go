package explain

import (
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// choosePort sets the port of the request, and returns it; nil if the service has none of that
// number.
func (q *query) choosePort(d *snapshot.DestinationPlan) *discoveryv1.KubeServicePort {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return nil
	}
	if q.request.Port == 0 && len(k.Ports) > 0 {
		q.request.Port = k.Ports[0].Port
		if i := slices.IndexFunc(k.Ports, func(p discoveryv1.KubeServicePort) bool { return dialectOf(d).IsHTTP(&p) }); i >= 0 {
			q.request.Port = k.Ports[i].Port
		}
	}
	return portOf(d, q.request.Port)
}

// portOf is a port of a service; nil if it has none of that number.
func portOf(d *snapshot.DestinationPlan, number uint32) *discoveryv1.KubeServicePort {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return nil
	}
	i := slices.IndexFunc(k.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == number && p.Protocol != "UDP" })
	if i < 0 {
		return nil
	}
	return &k.Ports[i]
}

// noPort is what becomes of requests to a port that a service does not have. Proxies know no service without ports, whose name in its
// own cluster leads to its pods all the same (kubernetes.io: headless Services).
func (q *query) noPort(d *snapshot.DestinationPlan) (Verdict, string) {
	if k := d.Destination.Spec.KubeService; k != nil && len(k.Ports) == 0 && d.Mesh.Ref == q.mesh.Ref {
		return Unknown, d.Ref.Name + " has no ports, so that the proxies of the callers do not know it; " + pastProxies
	}
	return Unreachable, fmt.Sprintf("%s has no port %d; it has %s", d.Ref.Name, q.request.Port, portsText(d))
}

func portsText(d *snapshot.DestinationPlan) string {
	var ports []uint32
	if k := d.Destination.Spec.KubeService; k != nil {
		for _, p := range k.Ports {
			ports = append(ports, p.Port)
		}
	}
	if len(ports) == 0 {
		return "none"
	}
	return numbers(ports)
}

// trafficOf is what proxies of a mesh see on a port.
func trafficOf(dialect *snapshot.Dialect, p *discoveryv1.KubeServicePort) snapshot.Traffic {
	switch protocol := snapshot.PortProtocol(*p); {
	case dialect.IsHTTP(p):
		return snapshot.Requests
	case protocol == "TLS" || protocol == "HTTPS":
		return snapshot.TLSConnections
	}
	return snapshot.Connections
}
