package policy

import (
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
		_, issues := c.shiftTargets()
		return issues
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		targets, _ := c.shiftTargets()
		setIfUnset(&action.Targets, targets, origin)
	},
}

// shiftTargets are the weighted targets as the viewer names them.
func (c *fieldContext) shiftTargets() ([]snapshot.Target, []snapshot.Issue) {
	destinations := c.spec.Policy.TrafficShift.Destinations
	targets := make([]snapshot.Target, 0, len(destinations))
	var issues []snapshot.Issue
	var weights uint32
	for i := range destinations {
		d := &destinations[i]
		field := shiftField(i)
		weights += d.Weight
		if d.VirtualDestination != nil || d.StaticDestination != nil {
			target, more := c.resolveOther(field, d)
			more = append(more, setOptions(field, d, &target)...)
			more = append(more, c.rootIssues(field, target)...)
			targets, issues = append(targets, target), append(issues, more...)
			continue
		}
		if d.KubeService == nil {
			issues = append(issues, unsupportedTarget(field, d))
			continue
		}
		target, more := c.resolve(field, commonv1.ClusterObjectRef{
			Name: d.KubeService.Name, Namespace: d.KubeService.Namespace, ClusterName: d.KubeService.ClusterName,
		}, d.KubeService.Port)
		issues = append(append(issues, more...), c.rootIssues(field, target)...)
		if len(d.KubeService.Subset) > 0 {
			target.Subset = subsetName(d.KubeService.Subset)
			issues = append(issues, c.emptySubset(field, target, d.KubeService.Subset)...)
		}
		issues = append(issues, setOptions(field, d, &target)...)
		targets = append(targets, target)
	}
	if len(destinations) > 1 && weights == 0 {
		issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "give at least one of them a weight",
			"the weights of policy.trafficShift.destinations are all 0").At("policy.trafficShift.destinations"))
	}
	return targets, issues
}

// resolveOther finds a target that is not a Service.
func (c *fieldContext) resolveOther(field string, d *networkingv1.WeightedDestination) (snapshot.Target, []snapshot.Issue) {
	if d.VirtualDestination != nil {
		return c.resolveVirtual(field, d.VirtualDestination)
	}
	return c.resolveExternal(field, *d.StaticDestination)
}

// setOptions sets the weight and options of a target of any kind.
func setOptions(field string, d *networkingv1.WeightedDestination, target *snapshot.Target) []snapshot.Issue {
	target.Weight = d.Weight
	if d.Options == nil {
		return nil
	}
	target.Headers = d.Options.HeaderManipulation
	return checkHeaders(field+".options.headerManipulation", target.Headers)
}

func unsupportedTarget(field string, d *networkingv1.WeightedDestination) snapshot.Issue {
	if d.ClusterHeader == "" {
		return snapshot.Errorf(snapshot.FieldInvalid, "set its kubeService", "%s names no target", field).At(field)
	}
	return snapshot.Errorf(snapshot.FieldUnsupported, "use kubeService", "%s.clusterHeader is not available", field).At(field + ".clusterHeader")
}

// resolve finds a Service, its name in the viewer's mesh, and its port: the given
// one, or else the only one.
func (c *fieldContext) resolve(field string, service commonv1.ClusterObjectRef, port uint32) (snapshot.Target, []snapshot.Issue) {
	i, ok := c.env.inv.IndexOfService(service)
	if !ok {
		return snapshot.Target{}, []snapshot.Issue{snapshot.Errorf(snapshot.DestinationNotFound,
			"correct the reference; `meshctl describe destination` lists the services there are",
			"%s: service %s was not discovered", field, inventory.ServiceName(service)).At(field)}
	}
	d := c.env.inv.Destinations[i]
	target := snapshot.Target{Destination: inventory.DestinationRef(d)}
	host, reachable := c.env.topology.Host(i, c.viewer)
	if !reachable {
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.NotFederated,
			"federate it to that mesh in the VirtualMesh (its own mesh needs an east-west gateway), or restrict sourceSelector to clusters that can reach it",
			"%s: mesh %s cannot reach service %s", field, c.viewer.Ref.Name, inventory.ServiceName(service)).At(field)}
	}
	target.Host = host
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

// emptySubset warns of a subset without endpoints.
func (c *fieldContext) emptySubset(field string, target snapshot.Target, labels map[string]string) []snapshot.Issue {
	if target.Host == "" {
		return nil
	}
	i, ok := c.env.inv.IndexOf(target.Destination)
	if !ok {
		return nil
	}
	if hasLabels(c.env.inv.Destinations[i], labels) {
		return nil
	}
	return []snapshot.Issue{noSuchPods(field, labels)}
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

func noSuchPods(field string, labels map[string]string) snapshot.Issue {
	return snapshot.Warnf(snapshot.SubsetEmpty, "correct its subset, or start pods with these labels",
		"%s: no ready endpoint has the labels %s; requests sent there fail", field, labelList(labels)).At(field)
}

func labelList(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

func shiftField(i int) string { return "policy.trafficShift.destinations[" + strconv.Itoa(i) + "]" }
