package discovery

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// findDestinations lists the Services that belong to a mesh.
func (x *Index) findDestinations(kinds []*detected, workloads []*workload) []*discoveryv1.Destination {
	bySelector := newSelection(x.services, workloads)
	of := make(map[*controller]*workload, len(workloads))
	for _, wl := range workloads {
		of[wl.controller] = wl
	}
	all := newMachines(x.Objects, kinds)
	var found []candidate
	for _, s := range x.services {
		if isAlias(s) {
			reportAlias(x, s)
			continue
		}
		answering := bySelector.selected(s.Namespace, s.Spec.Selector)
		if len(s.Spec.Selector) == 0 {
			answering = backing{x}.namedWorkloads(s, of)
		}
		machines := all.of(s)
		if m := x.meshOfService(kinds, s, answering, len(machines) > 0); m != nil && !ignores(x, m, s.Namespace) {
			found = append(found, candidate{source: s, mesh: m, service: s, workloads: answering, machines: machines})
		}
	}
	found = x.keepToLimit(snapshot.Destination, found)
	given := newNames(snapshot.Destination, len(found))
	var out []*discoveryv1.Destination
	for _, c := range found {
		s, ref := c.service, c.mesh.ref()
		name := x.name(given, objectName(s.Name, s.Namespace, x.Cluster), x.serviceRef(s))
		d := &discoveryv1.Destination{
			ObjectMeta: x.meta(name),
			Spec:       discoveryv1.DestinationSpec{Mesh: &ref, KubeService: x.kubeService(kinds, &c, name)},
		}
		d.Spec.KubeService.ServiceAccounts = x.serviceAccounts(kinds, c)
		d.Spec.KubeService.ExportTo = exportTo(kinds, c)
		d.CreationTimestamp = s.CreationTimestamp
		backing{x}.reportProxies(d, c.bare)
		backing{x}.reportMachines(d)
		backing{x}.reportPorts(d)
		backing{x}.reportPastProxy(d)
		out = append(out, d)
	}
	return out
}

func (x *Index) serviceRef(s *corev1.Service) snapshot.Ref {
	return x.Ref(snapshot.Service, s)
}

// meshOfService is the mesh of the workloads that a Service selects, or for one
// without workloads, but with the annotation of destinations or with machines, that of its namespace.
func (x *Index) meshOfService(kinds []*detected, s *corev1.Service, backing []*workload, machines bool) *ControlPlane {
	if len(backing) == 0 {
		switch {
		case s.Annotations[snapshot.DiscoverServiceAnnotation] == "true":
			return x.meshOfNamespace(kinds, s)
		case machines:
			return meshOfMachines(x, kinds, s)
		}
		return x.lastMeshOf(kinds, s)
	}
	first := backing[0]
	for _, wl := range backing[1:] {
		if wl.mesh != first.mesh {
			x.Report(snapshot.Issue{
				Code: snapshot.AmbiguousMesh, Severity: snapshot.Warning, Ref: x.serviceRef(s),
				Message: fmt.Sprintf("it selects workloads of several meshes, such as %s of %s and %s of %s; it is assigned to %s",
					first.object.Name, first.mesh.Mesh.Name, wl.object.Name, wl.mesh.Mesh.Name, first.mesh.Mesh.Name),
				Hint:  "move all of its workloads to one control plane",
				Cause: wl.controller.ref,
			})
			break
		}
	}
	return first.mesh
}

// kubeService describes a Service and its workloads, for the Destination of a name.
func (x *Index) kubeService(kinds []*detected, c *candidate, name string) *discoveryv1.KubeService {
	s, answering := c.service, c.workloads
	waypoint, ingress := ambient{x}.askedWaypoint(kindOf(kinds, c.mesh), c)
	return &discoveryv1.KubeService{
		UseWaypoint: waypoint, IngressUseWaypoint: ingress,
		Ambient:                ambient{x}.serviceOf(kindOf(kinds, c.mesh), c),
		Ref:                    commonv1.ClusterObjectRef{Name: s.Name, Namespace: s.Namespace, ClusterName: x.Cluster},
		WorkloadSelectorLabels: s.Spec.Selector,
		Labels:                 s.Labels,
		Ports:                  servicePorts(s),
		Subsets:                subsets(answering, x.injected),
		Region:                 x.nodes.regionOf(answering),
		EndpointSubsets:        x.endpointSubsets(kinds, c, name),
		NoProxies:              backing{x}.hasNoProxies(c),
		ExternalAddresses:      x.nodes.externalAddresses(s, answering),
		ExternalIPs:            slices.Compact(slices.Sorted(slices.Values(s.Spec.ExternalIPs))),
		ServiceType:            serviceType(s.Spec.Type),
		Headless:               s.Spec.ClusterIP == corev1.ClusterIPNone,
		NodeLocal:              isNodeLocal(s),
	}
}

// isNodeLocal reports whether only pods on the node of a caller answer for a Service
// (https://kubernetes.io/docs/concepts/services-networking/service-traffic-policy/).
func isNodeLocal(s *corev1.Service) bool {
	return s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
}

// exportTo is what the mesh of a Service reads of it about who knows it.
func exportTo(kinds []*detected, c candidate) []string {
	if k := kindOf(kinds, c.mesh); k != nil && k.ExportTo != nil {
		return k.ExportTo(c.service)
	}
	return nil
}

// kindOf is the kind of a control plane; nil if there is none.
func kindOf(kinds []*detected, plane *ControlPlane) *detected {
	if i := slices.IndexFunc(kinds, func(k *detected) bool { return slices.Contains(k.controlPlanes, plane) }); i >= 0 {
		return kinds[i]
	}
	return nil
}

func serviceType(t corev1.ServiceType) discoveryv1.ServiceType {
	switch t {
	case corev1.ServiceTypeNodePort:
		return discoveryv1.ServiceTypeNodePort
	case corev1.ServiceTypeLoadBalancer:
		return discoveryv1.ServiceTypeLoadBalancer
	case corev1.ServiceTypeExternalName:
		return discoveryv1.ServiceTypeExternalName
	default:
		return discoveryv1.ServiceTypeClusterIP
	}
}

func servicePorts(s *corev1.Service) []discoveryv1.KubeServicePort {
	var out []discoveryv1.KubeServicePort
	for i := range s.Spec.Ports {
		from := &s.Spec.Ports[i]
		p := discoveryv1.KubeServicePort{
			Port:        uint32(from.Port),
			Name:        from.Name,
			Protocol:    string(from.Protocol),
			AppProtocol: value(from.AppProtocol),
			NodePort:    uint32(from.NodePort),
		}
		switch {
		case from.TargetPort.Type == intstr.String && from.TargetPort.StrVal != "":
			p.TargetPortName = from.TargetPort.StrVal
		case from.TargetPort.IntVal != 0:
			p.TargetPortNumber = uint32(from.TargetPort.IntVal)
		default:
			// An API server would have filled it in; files need not.
			p.TargetPortNumber = p.Port
		}
		out = append(out, p)
	}
	return out
}

// unsubsettable reports labels that differ between pods, but that no policy routes by. Injected are those that meshes add.
func unsubsettable(label string, injected []string) bool {
	return ofRevision[label] || strings.HasSuffix(label, "-hash") || slices.Contains(injected, label)
}

// subsets are the labels by which the workloads behind a Service differ: each
// with more than one value, values ascending. nil if there is none.
func subsets(backing []*workload, injected []string) map[string]discoveryv1.KubeServiceSubsets {
	if len(backing) < 2 {
		return nil
	}
	values := map[string][]string{}
	for _, wl := range backing {
		for label, v := range wl.controller.template.Labels {
			if !unsubsettable(label, injected) && !slices.Contains(values[label], v) {
				values[label] = append(values[label], v)
			}
		}
	}
	var out map[string]discoveryv1.KubeServiceSubsets
	for label, vs := range values {
		if len(vs) < 2 {
			continue
		}
		slices.SortFunc(vs, strings.Compare)
		if out == nil {
			out = map[string]discoveryv1.KubeServiceSubsets{}
		}
		out[label] = discoveryv1.KubeServiceSubsets{Values: vs}
	}
	return out
}

// value is what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
