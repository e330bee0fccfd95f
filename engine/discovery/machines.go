package discovery

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// machines finds what is no pod, and answers for Services, by namespace.
type machines map[string][]Machine

func newMachines(c *snapshot.Cluster, kinds []*detected) machines {
	out := machines{}
	for _, k := range kinds {
		if k.Machines == nil || len(k.controlPlanes) == 0 {
			continue
		}
		for _, m := range k.Machines(c, k.controlPlanes) {
			out[m.Namespace] = append(out[m.Namespace], m)
		}
	}
	return out
}

// of are the machines that a Service selects: one with an address of its own (Istio, kube/controller,
// serviceInstancesFromWorkloadInstances).
func (all machines) of(s *corev1.Service) (out []Machine) {
	if len(all) == 0 || len(s.Spec.Selector) == 0 || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	for _, m := range all[s.Namespace] {
		if contains(m.Labels, s.Spec.Selector) {
			out = append(out, m)
		}
	}
	return out
}

// meshOfMachines is the mesh of a Service that selects machines, and no pods of a mesh: that of its namespace; nil if that is in
// doubt.
func meshOfMachines(x *Index, kinds []*detected, s *corev1.Service) *ControlPlane {
	named, possible := x.candidates(kinds, s.Namespace)
	switch {
	case len(named) == 1:
		return named[0]
	case len(possible) == 1:
		return possible[0]
	}
	return nil
}

// portsOf are where a machine listens for the ports of a Service. It has none for a target port whose name it does not have (Istio,
// kube/controller, serviceInstanceFromWorkloadInstance).
func (m *Machine) portsOf(s *corev1.Service) (out []discoveryv1.EndpointPort) {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		name, number, explicit := p.TargetPort.StrVal, uint32(0), true
		if p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal > 0 {
			name, number, explicit = p.Name, uint32(p.TargetPort.IntVal), false
		}
		switch port := m.Ports[name]; {
		case name != "" && port != 0:
			number = port
		case name != "" && explicit:
			continue
		case number == 0:
			number = uint32(p.Port)
		}
		out = append(out, discoveryv1.EndpointPort{Port: number, Name: p.Name, Protocol: string(p.Protocol), AppProtocol: value(p.AppProtocol)})
	}
	return out
}

// addMachine adds a machine that answers for a Service.
func (b *endpointBuilder) addMachine(s *corev1.Service, m *Machine) {
	ports := m.portsOf(s)
	if len(ports) == 0 {
		return
	}
	at := b.subset(discoveryv1.EndpointSubset{Ports: ports, NoProxy: !m.Mutual, Machines: true}, 1)
	b.subsets[at].Endpoints = append(b.subsets[at].Endpoints, discoveryv1.Endpoint{IpAddress: m.Address, Labels: m.Labels})
}
