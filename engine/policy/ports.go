package policy

import (
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// noRequests are the protocols, by prefix of the port name, in which a proxy sees
// connections only.
var noRequests = []string{"tcp", "tls", "https", "udp", "mongo", "mysql", "redis"}

// takesRequests reports whether a proxy sees requests on a port.
func takesRequests(p *discoveryv1.KubeServicePort) bool {
	if p.Protocol != "" && p.Protocol != "TCP" {
		return false
	}
	name := strings.ToLower(p.AppProtocol)
	if name == "" {
		name, _, _ = strings.Cut(strings.ToLower(p.Name), "-")
	}
	return !slices.Contains(noRequests, name)
}

// checkPorts warns of a policy on requests if the service has no port for requests.
func (env *environment) checkPorts(self int, p *networkingv1.Policy) []snapshot.Issue {
	service := env.inv.Destinations[self].Spec.KubeService
	if d := env.dialect(self); d != nil && d.KeepsPort {
		return nil // connections are split as requests are
	}
	for i := range service.Ports {
		if takesRequests(&service.Ports[i]) {
			return nil
		}
	}
	for i := range features {
		if f := &features[i]; f.route != nil && f.value(p) != nil {
			return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
				"name a port of the Service after its protocol, such as http or grpc, or exclude the service from the policy",
				"%s has no effect: service %s has no port for HTTP", f.field, inventory.ServiceName(service.Ref)).At(f.field)}
		}
	}
	return nil
}
