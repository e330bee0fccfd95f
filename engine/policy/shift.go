package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var trafficShift = feature{
	field: "policy.trafficShift",
	value: func(p *networkingv1.Policy) any { return has(p.TrafficShift) },
	check: func(c *fieldContext) []snapshot.Issue {
		s := c.resolveShift()
		if len(s.missing) > 0 && c.acceptedBefore(shiftOf) {
			return append(c.missingIssues(s), s.issues...)
		}
		var issues []snapshot.Issue
		for _, m := range s.missing {
			issues = append(issues, m.why...)
		}
		return append(issues, s.issues...)
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		s := c.resolveShift()
		if s.leads() {
			setIfUnset(&action.Targets, s.targets, origin)
		}
		if len(s.missing) == 0 {
			return
		}
		var missing []snapshot.MissingTarget
		for _, m := range s.missing {
			missing = append(missing, m.MissingTarget)
		}
		setIfUnset(&action.Missing, missing, origin)
	},
}

// shift is a trafficShift as seen from the viewer's mesh.
type shift struct {
	targets []snapshot.Target
	missing []missingTarget
	// issues are all others than those because of which targets are missing.
	issues []snapshot.Issue
	// weights is the sum of all weights, also of targets that are missing, and sole is
	// set if there is one target, which gets all requests whatever its weight.
	weights uint64
	sole    bool
}

// asksFor reports whether a target of that weight is to get requests.
func (s *shift) asksFor(weight uint32) bool { return weight > 0 || s.sole }

// share is the part of the requests that a target of that weight is to get, in percent.
func (s *shift) share(weight uint32) float64 {
	if s.sole {
		return 100
	}
	return 100 * float64(weight) / float64(s.weights)
}

// leads reports whether any target gets requests.
func (s *shift) leads() bool {
	return slices.ContainsFunc(s.targets, func(t snapshot.Target) bool { return s.asksFor(t.Weight) })
}

func (c *fieldContext) resolveShift() *shift {
	destinations := c.spec.Policy.TrafficShift.Destinations
	s := &shift{sole: len(destinations) == 1}
	for i := range destinations {
		s.weights += uint64(destinations[i].Weight)
	}
	for i := range destinations {
		c.addTarget(s, shiftField(i), &destinations[i])
	}
	if len(destinations) > 1 && s.weights == 0 {
		s.issues = append(s.issues, snapshot.Errorf(snapshot.FieldInvalid, "give at least one of them a weight",
			"the weights of policy.trafficShift.destinations are all 0").At("policy.trafficShift.destinations"))
	}
	return s
}

// addTarget finds a target, and adds it to those that get requests or to those that are
// missing.
func (c *fieldContext) addTarget(s *shift, field string, d *networkingv1.WeightedDestination) {
	var target snapshot.Target
	var issues []snapshot.Issue
	missing := snapshot.MissingTarget{Weight: d.Weight}
	switch {
	case d.VirtualDestination != nil:
		v := d.VirtualDestination
		target, issues = c.resolveVirtual(field, v)
		target.Subset = subsetName(v.Subset)
		missing.Name = "VirtualDestination " + v.Name + "." + v.Namespace
	case d.StaticDestination != nil:
		target, issues = c.resolveExternal(field, *d.StaticDestination)
		missing.Name = "external service " + d.StaticDestination.Name + "." + d.StaticDestination.Namespace
	case d.KubeService != nil:
		k := d.KubeService
		target, issues = c.resolve(field, serviceOf(k), k.Port)
		target.Subset = subsetName(k.Subset)
		missing.Name, missing.Cluster = "service "+k.Name+"."+k.Namespace, k.ClusterName
	default:
		s.issues = append(s.issues, unsupportedTarget(field, d))
		return
	}
	target.Weight, missing.Subset = d.Weight, target.Subset
	if d.Options != nil {
		target.Headers = d.Options.HeaderManipulation
		s.issues = append(s.issues, checkHeaders(field+".options.headerManipulation", target.Headers)...)
	}
	if snapshot.HasErrors(issues) {
		s.missing = append(s.missing, missingTarget{missing, field, issues})
		return
	}
	s.targets = append(s.targets, target)
	issues = append(issues, c.rootIssues(field, target)...)
	if s.asksFor(d.Weight) {
		issues = append(issues, c.failingIssues(field, d, &target, s.share(d.Weight))...)
	}
	s.issues = append(s.issues, issues...)
}

func serviceOf(k *networkingv1.KubeDestination) commonv1.ClusterObjectRef {
	return commonv1.ClusterObjectRef{Name: k.Name, Namespace: k.Namespace, ClusterName: k.ClusterName}
}

func unsupportedTarget(field string, d *networkingv1.WeightedDestination) snapshot.Issue {
	if d.ClusterHeader == "" {
		return snapshot.Errorf(snapshot.FieldInvalid, "set its kubeService", "%s names no target", field).At(field)
	}
	return snapshot.Errorf(snapshot.FieldUnsupported, "use kubeService", "%s.clusterHeader is not available", field).At(field + ".clusterHeader")
}

// serviceNotFound is the issue for a Service that was not discovered.
func serviceNotFound(inv *inventory.Inventory, field string, service commonv1.ClusterObjectRef) []snapshot.Issue {
	return []snapshot.Issue{inv.NotDiscovered(field, service, findDestination)}
}

// resolve finds a Service, its name in the viewer's mesh, and its port: the given
// one, or else the only one.
func (c *fieldContext) resolve(field string, service commonv1.ClusterObjectRef, port uint32) (snapshot.Target, []snapshot.Issue) {
	i, ok := c.env.inv.IndexOfService(service)
	if !ok {
		return snapshot.Target{}, serviceNotFound(c.env.inv, field, service)
	}
	d := c.env.inv.Destinations[i]
	target := snapshot.Target{Destination: inventory.DestinationRef(d)}
	host, reachable := c.env.topology.Host(i, c.viewer)
	if left := c.env.topology.LeftOut(i); !reachable && left.Why != "" {
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.NotFederated, left.Hint,
			"%s: mesh %s cannot reach service %s: %s", field, c.viewer.Ref.Name, inventory.ServiceName(service), left.Why).At(field)}
	}
	if mesh := c.env.topology.MeshOf(d); !reachable && mesh != nil && len(mesh.Served) > 0 {
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.NotFederated,
			"make its gateway serve again: `meshctl describe mesh "+mesh.Ref.Name+"` says what is wrong with it",
			"%s: mesh %s cannot reach service %s: no gateway of cluster %s serves at present", field, c.viewer.Ref.Name, inventory.ServiceName(service), mesh.Cluster).At(field)}
	}
	if !reachable {
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.NotFederated,
			"federate it to that mesh in the VirtualMesh (its own mesh needs an east-west gateway), or restrict sourceSelector to clusters that can reach it",
			"%s: mesh %s cannot reach service %s", field, c.viewer.Ref.Name, inventory.ServiceName(service)).At(field)}
	}
	if target.Host = host; d.Spec.KubeService.Ref.ClusterName != c.viewer.Cluster {
		target.Place = snapshot.PlaceElsewhere
	}
	ports := d.Spec.KubeService.Ports
	if dialect := c.env.dialect(c.index); dialect != nil && dialect.KeepsPort {
		return c.keepPorts(field, target, ports)
	}
	switch {
	case port != 0 && !slices.ContainsFunc(ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port }):
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "use one of "+portList(ports),
			"%s: service %s has no port %d", field, inventory.ServiceName(service), port).At(field)}
	case port != 0:
		target.Port = port
	case len(ports) == 1:
		target.Port = ports[0].Port
	default:
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set port to one of "+portList(ports),
			"%s: service %s has %d ports, and none is specified", field, inventory.ServiceName(service), len(ports)).At(field)}
	}
	return target, nil
}

// keepPorts checks that the target has all ports: requests keep their port.
func (c *fieldContext) keepPorts(field string, target snapshot.Target, ports []discoveryv1.KubeServicePort) (snapshot.Target, []snapshot.Issue) {
	own := c.env.inv.Destinations[c.index].Spec.KubeService
	for _, p := range own.Ports {
		if p.Protocol != "" && p.Protocol != "TCP" {
			continue
		}
		if !slices.ContainsFunc(ports, func(o discoveryv1.KubeServicePort) bool { return o.Port == p.Port }) {
			return target, []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "give the services the same ports",
				"%s: requests keep their port, and service %s has no port %d", field, target.Host, p.Port).At(field)}
		}
		if target.Port == 0 {
			target.Port = p.Port
		}
	}
	return target, nil
}

func portList(ports []discoveryv1.KubeServicePort) string {
	var out []string
	for _, p := range ports {
		out = append(out, strconv.FormatUint(uint64(p.Port), 10))
	}
	return strings.Join(out, ", ")
}

// failingIssues say that the requests to a target fail: nothing is ready to answer them, or nothing on the way. Share is their part
// of the requests, in percent. The target keeps it: requests must arrive for a service that is started by them, and a
// rollout must not change routes.
func (c *fieldContext) failingIssues(field string, d *networkingv1.WeightedDestination, target *snapshot.Target, share float64) []snapshot.Issue {
	requests := "requests"
	if len(c.spec.HttpRequestMatchers) > 0 || len(c.spec.SourceSelector) > 0 {
		requests = "selected requests"
	}
	what := fmt.Sprintf("%s of the %s to %s", snapshot.Percent(share), requests, inventory.ServiceName(c.env.inv.Destinations[c.index].Spec.KubeService.Ref))
	fail := func(code snapshot.Code, hint, from, format string, args ...any) []snapshot.Issue {
		return []snapshot.Issue{snapshot.Errorf(code, hint, "%s%s fail: %s", what, from, fmt.Sprintf(format, args...)).At(field)}
	}
	var services []*discoveryv1.Destination
	var labels map[string]string
	at := target.Destination
	switch {
	case d.VirtualDestination != nil:
		for _, b := range c.env.virtualDestinations[at].Backing {
			services = append(services, b.Destination)
		}
		labels = d.VirtualDestination.Subset
	case d.StaticDestination != nil:
		return nil // nothing is known of the endpoints of external services
	default:
		if i, ok := c.env.inv.IndexOf(at); ok {
			services = append(services, c.env.inv.Destinations[i])
		}
		labels = d.KubeService.Subset
	}
	switch {
	case slices.ContainsFunc(services, func(s *discoveryv1.Destination) bool { return hasLabels(s, labels) }):
	case len(labels) > 0:
		return fail(snapshot.SubsetEmpty, "correct the subset, or start pods with these labels", "", "no ready endpoint of %s has the labels %s", c.targetName(d), labelList(labels))
	case d.VirtualDestination == nil:
		hint := "start its pods"
		if ok, _ := c.viewer.Dialect.Supports(snapshot.TrafficPolicy, "policy.trafficShift.destinations.virtualDestination"); ok {
			hint += ", or shift to a VirtualDestination, which fails over to other services"
		}
		return fail(snapshot.NoEndpoints, hint, "", "service %s has no ready endpoint", c.targetName(d))
	default:
		return fail(snapshot.NoEndpoints, "start the pods of a service behind it", "", "no service behind %s has a ready endpoint", c.targetName(d))
	}
	if gw := c.gatewayDown(d, target); gw != nil {
		cluster := gw.Service.Cluster
		return fail(snapshot.GatewayNotReady, "start the pods of the gateway in cluster "+cluster+"; `meshctl describe problems` has its issue", " from outside of "+cluster,
			"gateway %s.%s.%s has no ready pod", gw.Service.Name, gw.Service.Namespace, cluster)
	}
	return nil
}

// targetName is what a target with a share is called.
func (c *fieldContext) targetName(d *networkingv1.WeightedDestination) string {
	if v := d.VirtualDestination; v != nil {
		return "VirtualDestination " + v.Name + "." + v.Namespace
	}
	return inventory.ServiceName(serviceOf(d.KubeService))
}

// gatewayDown is the gateway through which requests for a target pass, if none of its pods is ready; nil if it serves, or if they pass
// through none.
func (c *fieldContext) gatewayDown(d *networkingv1.WeightedDestination, target *snapshot.Target) *snapshot.GatewayPlan {
	if d.KubeService == nil || target.Place != snapshot.PlaceElsewhere {
		return nil
	}
	i, ok := c.env.inv.IndexOf(target.Destination)
	if !ok {
		return nil
	}
	mesh := c.env.topology.MeshOf(c.env.inv.Destinations[i])
	if mesh == nil {
		return nil
	}
	if at := slices.IndexFunc(mesh.Gateways, func(gw snapshot.GatewayPlan) bool { return gw.NoPods }); at >= 0 {
		return &mesh.Gateways[at]
	}
	return nil
}

// hasLabels reports whether any endpoint of a Service has all of the labels.
func hasLabels(d *discoveryv1.Destination, labels map[string]string) bool {
	for _, part := range d.Spec.KubeService.EndpointSubsets {
		for i := range part.Endpoints {
			if inventory.MatchLabels(labels, part.Endpoints[i].Labels) {
				return true
			}
		}
	}
	return false
}

func labelList(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

func shiftField(i int) string { return "policy.trafficShift.destinations[" + strconv.Itoa(i) + "]" }
