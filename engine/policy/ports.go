package policy

import (
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// routesRequests reports whether routes for requests have an effect on a service: on one of its ports proxies see requests, or they
// split connections in the same way.
func (env *environment) routesRequests(self int) bool {
	dialect, service := env.dialect(self), env.inv.Destinations[self].Spec.KubeService
	return dialect != nil && dialect.KeepsPort ||
		slices.ContainsFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return dialect.IsHTTP(&p) })
}

// checkPorts warns of a policy on requests if the service has no port for requests.
func (env *environment) checkPorts(self int, p *networkingv1.Policy) []snapshot.Issue {
	if env.routesRequests(self) {
		return nil
	}
	service := env.inv.Destinations[self].Spec.KubeService
	for i := range features {
		if f := &features[i]; f.route != nil && f.value(p) != nil {
			return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
				"name a port of the Service after its protocol, such as http or grpc, or exclude the service from the policy",
				"%s has no effect: service %s has no port for HTTP", f.field, inventory.ServiceName(service.Ref)).At(f.field)}
		}
	}
	return nil
}

// connectionIssues warns of conditions on requests for ports of a service on which proxies see connections only: there the rule
// allows nobody (istio.io: Authorization Policy Conditions, Security for TCP traffic).
func connectionIssues(rule *snapshot.AccessRule, service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) []snapshot.Issue {
	field := "allowedMethods"
	switch {
	case len(rule.Methods) > 0:
	case len(rule.Paths) > 0:
		field = "allowedPaths"
	default:
		return nil
	}
	var closed []string
	open := false
	for i := range service.Ports {
		p := &service.Ports[i]
		switch {
		case p.Protocol != "" && p.Protocol != "TCP" || len(rule.Ports) > 0 && !slices.Contains(rule.Ports, p.Port):
		case mesh.Dialect.IsHTTP(p):
			open = true
		default:
			closed = append(closed, strconv.FormatUint(uint64(p.Port), 10))
		}
	}
	if len(closed) == 0 {
		return nil
	}
	what := "lets nobody in on port " + strings.Join(closed, ", ")
	if !open {
		what = "lets nobody in on any port"
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
		"leave it out, or if the port carries HTTP, name it after its protocol, such as http or grpc",
		"%s %s of service %s: proxies see connections there, not requests", field, what, inventory.ServiceName(service.Ref)).At(field)}
}
