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
		q.request.Port = k.Ports[max(0, slices.IndexFunc(k.Ports, isTCP))].Port
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
	i := slices.IndexFunc(k.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == number && isTCP(p) })
	if i < 0 {
		return nil
	}
	return &k.Ports[i]
}

// isTCP reports whether requests and connections get to a port.
func isTCP(p discoveryv1.KubeServicePort) bool { return p.Protocol != "UDP" }

// noPort is what becomes of requests to a port that a service does not have. Proxies know no service without ports, whose name in its
// own cluster leads to its pods all the same (kubernetes.io: headless Services).
func (q *query) noPort(d *snapshot.DestinationPlan) (Verdict, string) {
	if k := d.Destination.Spec.KubeService; k != nil && len(k.Ports) == 0 && d.Mesh.Ref == q.mesh.Ref {
		return Unknown, d.Ref.Name + " has no ports, so that the proxies of the callers do not know it; " + pastProxies
	}
	return Unreachable, noPortText(d, q.request.Port)
}

// noPortText says that a service does not have a port for requests and connections, and which it has.
func noPortText(d *snapshot.DestinationPlan, number uint32) string {
	var ports []uint32
	isUDP := false
	if k := d.Destination.Spec.KubeService; k != nil {
		for _, p := range k.Ports {
			if isTCP(p) {
				ports = append(ports, p.Port)
			}
			isUDP = isUDP || p.Port == number && !isTCP(p)
		}
	}
	says, has := fmt.Sprintf("%s has no port %d", d.Ref.Name, number), "none"
	if isUDP {
		says = fmt.Sprintf("port %d of %s is for UDP, and requests need TCP", number, d.Ref.Name)
	}
	if len(ports) > 0 {
		has = numbers(ports)
	}
	if isUDP {
		has += " for TCP"
	}
	return says + "; it has " + has
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
