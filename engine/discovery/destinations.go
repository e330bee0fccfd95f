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
func (w *world) findDestinations(kinds []detector, workloads []*workload) []*discoveryv1.Destination {
	given := newNames(snapshot.Destination, len(w.services))
	bySelector := newSelection(w.services, workloads)
	var out []*discoveryv1.Destination
	for _, s := range w.services {
		backing := bySelector.selected(s.Namespace, s.Spec.Selector)
		m := w.meshOfService(kinds, s, backing)
		if m == nil {
			continue
		}
		name := w.name(given, objectName(s.Name, s.Namespace, w.cluster), w.serviceRef(s))
		ref := m.ref()
		out = append(out, &discoveryv1.Destination{
			ObjectMeta: w.meta(name),
			Spec:       discoveryv1.DestinationSpec{Mesh: &ref, KubeService: w.kubeService(s, backing)},
		})
	}
	return out
}

func (w *world) serviceRef(s *corev1.Service) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.Service, Cluster: w.cluster, Namespace: s.Namespace, Name: s.Name}
}

// meshOfService is the mesh of the workloads behind a Service. One without
// workloads may ask to be a destination all the same.
func (w *world) meshOfService(kinds []detector, s *corev1.Service, backing []*workload) *mesh {
	if len(backing) == 0 {
		if s.Annotations[snapshot.DiscoverServiceAnnotation] == "true" {
			return w.meshOfNamespace(kinds, s)
		}
		return nil
	}
	first := backing[0]
	for _, wl := range backing[1:] {
		if wl.mesh != first.mesh {
			w.report(snapshot.Issue{
				Code: snapshot.AmbiguousMesh, Severity: snapshot.Warning, Ref: w.serviceRef(s),
				Message: fmt.Sprintf("workloads of several meshes stand behind it, %s of %s and %s of %s among them; it is counted to %s",
					first.object.Name, first.mesh.object.Name, wl.object.Name, wl.mesh.object.Name, first.mesh.object.Name),
				Hint: "move all of its workloads to one control plane",
			})
			break
		}
	}
	return first.mesh
}

// kubeService describes a Service and what stands behind it.
func (w *world) kubeService(s *corev1.Service, backing []*workload) *discoveryv1.KubeService {
	return &discoveryv1.KubeService{
		Ref:                    commonv1.ClusterObjectRef{Name: s.Name, Namespace: s.Namespace, ClusterName: w.cluster},
		WorkloadSelectorLabels: s.Spec.Selector,
		Labels:                 s.Labels,
		Ports:                  servicePorts(s),
		Subsets:                subsets(backing),
		Region:                 w.regionOfWorkloads(backing),
		EndpointSubsets:        w.endpointSubsets(s, backing),
		ExternalAddresses:      w.externalAddresses(s, backing),
		ServiceType:            serviceType(s.Spec.Type),
	}
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

// unsubsettable are labels that tell pods apart, but that nobody routes by.
func unsubsettable(label string) bool {
	return label == "pod-template-hash" || label == "service.istio.io/canonical-revision"
}

// subsets are the labels by which the workloads behind a Service differ: each
// with more than one value, values ascending. nil if there is none.
func subsets(backing []*workload) map[string]discoveryv1.KubeServiceSubsets {
	if len(backing) < 2 {
		return nil
	}
	values := map[string][]string{}
	for _, wl := range backing {
		for label, v := range wl.controller.template.Labels {
			if !unsubsettable(label) && !slices.Contains(values[label], v) {
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
