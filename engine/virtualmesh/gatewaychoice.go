package virtualmesh

import (
	"cmp"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// gatewayChoice is why a Service that looks like a gateway may be one. Other clusters send
// their requests to gateways, and a global access policy leaves them open: who can only
// edit a namespace must not be able to make one.
type gatewayChoice uint8

const (
	// ignored: anyone who may edit its namespace can have made it.
	ignored gatewayChoice = iota
	// installed: it is in the namespace of the mesh's control plane.
	installed
	// named: a VirtualMesh or the Settings name it or its namespace.
	named
)

// gatewayChooser chooses among the Services of a mesh. Selectors are those of its VirtualMesh; nil if that asks for no gateways.
type gatewayChooser struct {
	*Topology
	selectors []commonv1.IngressGatewaySelector
	mesh      *snapshot.MeshPlan
}

// chosen says why a Service may be a gateway of the mesh.
func (t *gatewayChooser) chosen(d *discoveryv1.Destination) gatewayChoice {
	for i := range t.selectors {
		if naming := naming(t.selectors[i].DestinationSelectors); len(naming) > 0 && inventory.SelectsDestination(naming, d) {
			return named
		}
	}
	namespace := d.Spec.KubeService.Ref.Namespace
	if s := t.settings; s != nil && s.Spec.Discovery != nil && s.Spec.Discovery.Istio != nil &&
		names(s.Spec.Discovery.Istio.GatewayNamespaces, t.mesh.Cluster, namespace) {
		return named
	}
	if namespace == t.mesh.Namespace {
		return installed
	}
	return ignored
}

// gatewaySelectors are those of a VirtualMesh for east-west gateways.
func gatewaySelectors(vm *networkingv1.VirtualMesh) []commonv1.IngressGatewaySelector {
	if f := vm.Spec.Federation; f != nil {
		return f.EastWestIngressGatewaySelectors
	}
	return nil
}

// naming are the selectors that name Services or namespaces.
func naming(selectors []commonv1.DestinationSelector) []commonv1.DestinationSelector {
	var out []commonv1.DestinationSelector
	for _, s := range selectors {
		if m := s.KubeServiceMatcher; m != nil && len(m.Namespaces) == 0 {
			s.KubeServiceMatcher = nil
		}
		if s.KubeServiceMatcher != nil || s.KubeServiceRefs != nil {
			out = append(out, s)
		}
	}
	return out
}

// hasGatewayRole reports whether a Service of a mesh selects pods that are labelled as a gateway.
func hasGatewayRole(mesh *snapshot.MeshPlan, d *discoveryv1.Destination) bool {
	return mesh.Dialect.Gateways.Enters(d.Spec.KubeService.WorkloadSelectorLabels)
}

// ignoredGateways warns of Services that look like gateways of a member, or that a
// selector of the VirtualMesh matches by labels alone, and that are not used.
func (t *gatewayChooser) ignoredGateways() []snapshot.Issue {
	mesh := t.mesh
	of := commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}
	candidates := t.gateways[of]
	if len(t.selectors) > 0 || mesh.DenyByDefault != nil {
		candidates = t.inv.Destinations
	}
	var first *discoveryv1.Destination
	count := 0
	for _, d := range candidates {
		if d.Spec.KubeService == nil || d.Spec.Mesh == nil || *d.Spec.Mesh != of || snapshot.AllAmbient(d.Spec.KubeService) || t.chosen(d) != ignored {
			continue
		}
		// One of another role matters where access is denied by default.
		looksLikeOne := hasGatewayRole(mesh, d) || mesh.DenyByDefault != nil && selectsOneOf(d.Spec.KubeService, t.gatewayPods)
		for i := range t.selectors {
			looksLikeOne = looksLikeOne || selectsGateway(&t.selectors[i], mesh, d)
		}
		if looksLikeOne {
			first = cmp.Or(first, d)
			count++
		}
	}
	if count == 0 {
		return nil
	}
	are := "look like gateways and are not named"
	if count == 1 {
		are = "looks like a gateway and is not named"
	}
	what, hint := "not used", "if you installed it, name it in federation.eastWestIngressGatewaySelectors by reference or with its namespace, or name its namespace in the Settings (discovery.istio.gatewayNamespaces); else ask who made it"
	if mesh.DenyByDefault != nil {
		what, hint = "not used, and closed by globalAccessPolicy", "if you installed it, name its namespace in the Settings (discovery.istio.gatewayNamespaces), or write an AccessPolicy without sourceSelector on it; else ask who made it"
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.GatewayIgnored, hint, "%s outside of namespace %s %s, such as %s: %s",
		snapshot.Count(count, "Service"), mesh.Namespace, are, inventory.ServiceName(first.Spec.KubeService.Ref), what).
		At("federation").CausedBy(inventory.DestinationRef(first))}
}

// mixedGateways warns of Services that would stay open as gateways, if they did not select other pods, too.
func (t *gatewayChooser) mixedGateways() []snapshot.Issue {
	if t.mesh.DenyByDefault == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, d := range gatewaysOf(t.mesh, t.inv, t.gatewayPods) {
		if t.chosen(d) != ignored && selectsOneOf(d.Spec.KubeService, t.otherPods) {
			issues = append(issues, snapshot.Warnf(snapshot.GatewayIgnored, "let its selector select only the gateway, or write an AccessPolicy on it",
				"Service %s selects a gateway and other pods: closed by globalAccessPolicy", inventory.ServiceName(d.Spec.KubeService.Ref)).
				At("federation").CausedBy(inventory.DestinationRef(d)))
		}
	}
	return issues
}
