package virtualmesh

import (
	"cmp"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// defaultPortName is the gateway's port for connections from other clusters.
const defaultPortName = "tls"

// labelledGateways are the services that select pods with the label of gateways, by mesh.
func (t *Topology) labelledGateways() map[commonv1.ObjectRef][]*discoveryv1.Destination {
	out := map[commonv1.ObjectRef][]*discoveryv1.Destination{}
	for _, d := range t.inv.Destinations {
		if mesh := t.MeshOf(d); mesh != nil && d.Spec.KubeService != nil && mesh.Dialect.Gateways.RoleOf(d.Spec.KubeService.WorkloadSelectorLabels) != "" {
			out[*d.Spec.Mesh] = append(out[*d.Spec.Mesh], d)
		}
	}
	return out
}

// findGateways finds the services through which other clusters reach a mesh: those
// that the VirtualMesh selects, else those that the Settings call gateways, else the
// east-west gateways, else the ingress gateways. An administrator has put them where
// they are, or named them: see gatewayChoice. Served are those through which they reached it until now.
func (t *Topology) findGateways(federation *networkingv1.Federation, mesh *snapshot.MeshPlan, served servedGateways) ([]snapshot.GatewayPlan, []snapshot.Issue) {
	var gateways []snapshot.GatewayPlan
	var issues []snapshot.Issue
	candidates := t.gatewayCandidates(federation.EastWestIngressGatewaySelectors, mesh)
	designated := false
	for _, c := range candidates {
		c.served = served.find(c.destination)
		if c.asked = c.asked || c.served != nil; !c.asked && !hasPort(c.destination.Spec.KubeService, c.port()) {
			continue // nobody made it for other clusters
		}
		designated = true
		gateway, issue := newGateway(c)
		if issue != nil {
			issues = append(issues, *issue)
			continue
		}
		gateways = append(gateways, *gateway)
	}
	gateways, notReady := preferReady(gateways, served)
	issues = append(issues, notReady...)
	if len(gateways) == 0 {
		lost := served.lost(t.inv, mesh, candidates)
		designated, issues = designated || len(lost) > 0, append(issues, lost...)
	}
	if !designated {
		hint := "name its gateway in federation.eastWestIngressGatewaySelectors"
		if g := mesh.Dialect.Gateways; g != nil {
			hint = "install an east-west gateway (pods labelled " + g.Role + ": " + g.EastWest +
				", a LoadBalancer or NodePort Service with a port named " + defaultPortName + "), or name one in federation.eastWestIngressGatewaySelectors"
		}
		issues = append(issues, snapshot.Errorf(snapshot.GatewayMissing, hint,
			"mesh %s has no gateway for traffic from other clusters", mesh.Ref.Name).At("federation"))
	}
	return gateways, issues
}

// shareGateways shares the gateways of a mesh with the other revisions of its control
// plane, so that services keep their callers in other clusters while they move
// between revisions.
func shareGateways(vm *snapshot.VirtualMeshPlan) {
	for _, mesh := range vm.Members {
		if len(mesh.Gateways) > 0 {
			continue
		}
		for _, other := range vm.Members {
			if other.Cluster != mesh.Cluster || other.Namespace != mesh.Namespace {
				continue
			}
			for _, gw := range other.Gateways {
				if !gw.Shared {
					gw.Shared = true
					mesh.Gateways = append(mesh.Gateways, gw)
				}
			}
		}
		if len(mesh.Gateways) > 0 {
			mesh.Served = nil
			vm.Issues = slices.DeleteFunc(vm.Issues, func(i snapshot.Issue) bool {
				return (i.Code == snapshot.GatewayMissing || i.Code == snapshot.GatewayNotReady) && i.Target == mesh.Ref
			})
		}
	}
}

type gatewayCandidate struct {
	destination *discoveryv1.Destination
	portName    string
	// named by an administrator, rather than found.
	named bool
	// asked: it was made or named for traffic from other clusters, and is not an ingress gateway that may do for it.
	asked bool
	// served is how other clusters reached it until now; nil if they did not.
	served *discoveryv1.AppliedEastWestIngressGateway
}

// port is the name of the port for traffic from other clusters.
func (c *gatewayCandidate) port() string { return cmp.Or(c.portName, defaultPortName) }

func hasPort(service *discoveryv1.KubeService, name string) bool {
	return slices.ContainsFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Name == name })
}

func (t *Topology) gatewayCandidates(selectors []commonv1.IngressGatewaySelector, mesh *snapshot.MeshPlan) []gatewayCandidate {
	var found []gatewayCandidate
	of := commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}
	if len(selectors) > 0 {
		for _, d := range t.inv.Destinations {
			if d.Spec.Mesh == nil || *d.Spec.Mesh != of {
				continue
			}
			for i := range selectors {
				if !selectsGateway(&selectors[i], mesh, d) {
					continue
				}
				if choice := (&gatewayChooser{t, selectors[i : i+1], mesh}).chosen(d); choice != ignored {
					asked := len(selectors[i].DestinationSelectors) > 0 || mesh.Dialect.Gateways.IsEastWest(d.Spec.KubeService.WorkloadSelectorLabels)
					found = append(found, gatewayCandidate{destination: d, portName: selectors[i].PortName, named: choice == named, asked: asked})
					break
				}
			}
		}
		return found
	}
	detector := detectorFor(t.settings, mesh)
	for _, d := range t.detectedGateways(mesh, detector) {
		found = append(found, gatewayCandidate{destination: d, portName: detector.GatewayTlsPortName, asked: true})
	}
	if len(found) > 0 {
		return found
	}
	labels := mesh.Dialect.Gateways
	if labels == nil {
		return nil
	}
	for _, role := range []string{labels.EastWest, labels.Ingress[0]} {
		for _, d := range t.gateways[of] {
			if labels.RoleOf(d.Spec.KubeService.WorkloadSelectorLabels) != role {
				continue
			}
			if choice := (&gatewayChooser{t, nil, mesh}).chosen(d); choice != ignored {
				found = append(found, gatewayCandidate{destination: d, named: choice == named, asked: role == labels.EastWest})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// selectsGateway reports whether a selector matches. One without destinationSelectors
// matches the labelled gateways.
func selectsGateway(s *commonv1.IngressGatewaySelector, mesh *snapshot.MeshPlan, d *discoveryv1.Destination) bool {
	if len(s.DestinationSelectors) > 0 {
		return inventory.SelectsDestination(s.DestinationSelectors, d)
	}
	of := mesh.Dialect.Gateways
	role := of.RoleOf(d.Spec.KubeService.WorkloadSelectorLabels)
	return role != "" && (role == of.EastWest || role == of.Ingress[0])
}

// newGateway is the gateway that a candidate makes, or why other clusters cannot use it.
func newGateway(c gatewayCandidate) (*snapshot.GatewayPlan, *snapshot.Issue) {
	d, service, portName := c.destination, c.destination.Spec.KubeService, c.port()
	refused := func(code snapshot.Code, hint, format string, args ...any) (*snapshot.GatewayPlan, *snapshot.Issue) {
		issue := snapshot.Errorf(code, hint, "gateway %s "+format, append([]any{inventory.ServiceName(service.Ref)}, args...)...).
			At("federation").CausedBy(inventory.DestinationRef(d))
		return nil, &issue
	}
	if len(service.WorkloadSelectorLabels) == 0 {
		return refused(snapshot.GatewayUnusable, "give the Service a selector", "selects no pods")
	}
	at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Name == portName })
	if at < 0 {
		return refused(snapshot.GatewayUnusable, "name the port for traffic from other clusters "+portName+", or set portName in federation.eastWestIngressGatewaySelectors",
			"has no port named %q%s", portName, c.portUntilNow())
	}
	port := service.Ports[at]
	plan := &snapshot.GatewayPlan{
		Destination: inventory.DestinationRef(d), Service: inventory.ServiceRef(d), Selector: service.WorkloadSelectorLabels, NoPods: !hasReadyPods(service),
	}
	if pod, known := snapshot.PodPort(service, port); known {
		plan.ContainerPort = pod
	}
	switch service.ServiceType {
	case discoveryv1.ServiceTypeNodePort:
		plan.Port = port.NodePort
	case discoveryv1.ServiceTypeLoadBalancer:
		plan.Port = port.Port
	}
	for _, a := range service.ExternalAddresses {
		plan.Addresses = append(plan.Addresses, address(a))
	}
	if c.named && len(plan.Addresses) == 0 && len(service.ExternalIPs) > 0 {
		plan.Port, plan.Addresses = port.Port, service.ExternalIPs // they apply to all types
	}
	switch {
	case len(plan.Addresses) == 0 && len(service.ExternalIPs) > 0:
		return refused(snapshot.GatewayUnusable, "name it in federation.eastWestIngressGatewaySelectors, by reference or with its namespace; or make the Service a LoadBalancer",
			"has no address but externalIPs, which anyone who may edit the Service can write")
	case plan.Port == 0:
		return refused(snapshot.GatewayUnusable, "make the Service a LoadBalancer or a NodePort",
			"cannot be reached from other clusters: its type is %s", service.ServiceType)
	case plan.NoPods && c.served != nil && (plan.ContainerPort == 0 || len(plan.Addresses) == 0 && service.ServiceType == discoveryv1.ServiceTypeNodePort):
		return refused(snapshot.GatewayNotReady, startPods(service), "%s", noReadyPod)
	case plan.ContainerPort == 0:
		return refused(snapshot.GatewayNotReady, "start the gateway's pods, or give port "+portName+" a numeric targetPort",
			"does not serve yet: the pod port behind %q is unknown", portName)
	case len(plan.Addresses) == 0 && service.ServiceType == discoveryv1.ServiceTypeNodePort:
		return refused(snapshot.GatewayNotReady, "start the gateway's pods: its addresses are those of their nodes", "has no external address")
	case len(plan.Addresses) == 0:
		return refused(snapshot.GatewayNotReady, "wait for the load balancer, or check why it assigns no address to the Service",
			"has no external address%s", c.addressUntilNow())
	}
	return plan, nil
}

func address(a discoveryv1.ExternalAddress) string {
	if a.DnsName != "" {
		return a.DnsName
	}
	return a.Ip
}

// openGateways finds the gateways that a global access policy leaves open: those that
// the VirtualMesh uses, those that the Settings call gateways, and all others that an administrator installed or named.
func (t *Topology) openGateways(vm *snapshot.VirtualMeshPlan) {
	for _, mesh := range vm.Members {
		if mesh.DenyByDefault == nil || mesh.AccessSetting != nil {
			continue
		}
		seen, named := map[snapshot.Ref]bool{}, map[snapshot.Ref]bool{}
		open := func(service snapshot.Ref, selector map[string]string, addresses []string) {
			if seen[service] || len(selector) == 0 {
				return
			}
			seen[service] = true
			name := service.Name
			if len(addresses) > 0 {
				name = addresses[0]
			}
			// Gateways with node ports share their addresses.
			at := snapshot.Ref{Namespace: service.Namespace, Name: name}
			if named[at] {
				name = service.Name
			}
			named[at] = true
			mesh.OpenGateways = append(mesh.OpenGateways, snapshot.OpenGateway{Service: service, Selector: selector, Address: name})
		}
		for _, gw := range mesh.Gateways {
			if gw.Shared {
				continue
			}
			open(gw.Service, gw.Selector, gw.Addresses)
		}
		gateways := t.detectedGateways(mesh, detectorFor(t.settings, mesh))
		chooser := &gatewayChooser{t, gatewaySelectors(vm.VirtualMesh), mesh}
		for _, d := range gatewaysOf(mesh, t.inv, t.gatewayPods) {
			if chooser.chosen(d) != ignored {
				gateways = append(gateways, d)
			}
		}
		for _, d := range gateways {
			if selectsOneOf(d.Spec.KubeService, t.otherPods) {
				continue // who may edit the namespace could open all of its pods so; see mixedGateways
			}
			var addresses []string
			for _, a := range d.Spec.KubeService.ExternalAddresses {
				addresses = append(addresses, address(a))
			}
			open(inventory.ServiceRef(d), d.Spec.KubeService.WorkloadSelectorLabels, addresses)
		}
		slices.SortFunc(mesh.OpenGateways, func(a, b snapshot.OpenGateway) int { return a.Service.Compare(b.Service) })
	}
}
