package netpolicy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Network is the NetworkPolicies and pods of clusters. Nil has none.
type Network struct {
	clusters map[string]*snapshot.Cluster
	policies map[string]*Policies
	// unread are the clusters whose policies may not be read.
	unread map[string]bool
}

// NewNetwork reads clusters; nil if none has a NetworkPolicy, and all may be read.
func NewNetwork(clusters []*snapshot.Cluster) *Network {
	n := &Network{clusters: map[string]*snapshot.Cluster{}, policies: map[string]*Policies{}, unread: map[string]bool{}}
	for _, c := range clusters {
		if slices.Contains(c.Denied, snapshot.NetworkPolicy) {
			n.unread[c.Name] = true
		}
		if p := New(c); p != nil {
			n.policies[c.Name] = p
		}
		n.clusters[c.Name] = c
	}
	if len(n.policies)+len(n.unread) == 0 {
		return nil
	}
	return n
}

// Finding is a connection on the way from callers to a service that NetworkPolicies may end.
type Finding struct {
	Verdict Verdict
	// Cluster is where the policies By are, ascending; none if those of the cluster may not be read.
	Cluster string
	By      []snapshot.Ref
	// From and To are what is connected.
	From, To End
	Port     uint32
}

// End is what is at an end of a connection.
type End uint8

const (
	// Callers are the pods of the calling workload.
	Callers End = iota
	// Gateways are the east-west gateways of the mesh that is called.
	Gateways
	// OwnGateways are those of the callers' mesh.
	OwnGateways
	// Pods are those of the service that is called.
	Pods
)

// Service is what callers connect to, with what is on the way to it.
type Service struct {
	network *Network
	plan    *snapshot.DestinationPlan
	pods    []Side
	// gateways are the pods of each gateway of its mesh.
	gateways [][]Side
}

// To finds what is on the way to a Destination; nil if NetworkPolicies say nothing about it, as it is no service of a mesh.
func (n *Network) To(d *snapshot.DestinationPlan) *Service {
	k := d.Destination.Spec.KubeService
	if n == nil || k == nil || d.Mesh == nil {
		return nil
	}
	s := &Service{network: n, plan: d, pods: n.podsOf(d.Mesh.Cluster, k.Ref.Namespace, k.WorkloadSelectorLabels)}
	if len(s.pods) == 0 {
		s.pods = endpoints(k)
	}
	names := namedPorts(k)
	for i := range s.pods {
		s.pods[i].Ports = names
	}
	for _, g := range d.Mesh.Gateways {
		s.gateways = append(s.gateways, n.podsOf(d.Mesh.Cluster, g.Service.Namespace, g.Selector))
	}
	return s
}

// From returns the connections from the pods of a workload in a mesh to ports of the pods of the service that NetworkPolicies may end, in the
// order of the way.
func (s *Service) From(w *discoveryv1.Workload, mesh *snapshot.MeshPlan, ports []uint32) []Finding {
	if s == nil || mesh == nil || w.Spec.Kubernetes == nil {
		return nil
	}
	way := &way{network: s.network}
	home, there := mesh.Cluster, s.plan.Mesh.Cluster
	callers, outside := callersOf(w), []Side{{}}
	switch {
	case home == there:
		way.add(home, Callers, Pods, callers, s.pods, ports...)
	case !s.plan.ThroughGateways(mesh):
		way.add(home, Callers, Pods, callers, []Side{{Addresses: addresses(s.pods)}}, ports...)
		way.add(there, Callers, Pods, outside, s.pods, ports...)
	default:
		before, sources := Callers, callers
		if s.plan.Federation.Limited {
			before, sources = OwnGateways, nil
			for _, g := range mesh.Gateways {
				own := s.network.podsOf(home, g.Service.Namespace, g.Selector)
				way.add(home, Callers, OwnGateways, callers, own, g.ContainerPort)
				sources = append(sources, own...)
			}
		}
		for i, g := range s.plan.Mesh.Gateways {
			way.add(home, before, Gateways, sources, []Side{{Addresses: g.Addresses}}, g.Port)
			way.add(there, before, Gateways, outside, s.gateways[i], g.ContainerPort)
			way.add(there, Gateways, Pods, s.gateways[i], s.pods, ports...)
		}
	}
	return way.found
}

// way collects what is found on it.
type way struct {
	network *Network
	found   []Finding
}

func (w *way) add(cluster string, from, to End, sources, targets []Side, ports ...uint32) {
	if w.network.unread[cluster] {
		w.found = append(w.found, Finding{Verdict: MayPass, Cluster: cluster, From: from, To: to})
		return
	}
	for _, port := range ports {
		if verdict, by := w.network.worst(cluster, sources, targets, port); verdict != Passes {
			w.found = append(w.found, Finding{Verdict: verdict, Cluster: cluster, By: by, From: from, To: to, Port: port})
		}
	}
}

// worst is what becomes of the connections between some pods.
func (n *Network) worst(cluster string, from, to []Side, port uint32) (worst Verdict, by []snapshot.Ref) {
	p := n.policies[cluster]
	if p == nil {
		return Passes, nil
	}
	for _, f := range from {
		for _, t := range to {
			if verdict, refs := p.Ask(f, t, port); verdict > worst {
				worst, by = verdict, refs
			}
		}
	}
	return worst, by
}

// Isolating are the policies that isolate pods of the service for connections into them, and do not let everything in.
func (s *Service) Isolating() (out []snapshot.Ref) {
	if s == nil {
		return nil
	}
	for _, pod := range s.pods {
		out = append(out, s.network.policies[s.plan.Mesh.Cluster].Selects(pod)...)
	}
	slices.SortFunc(out, snapshot.Ref.Compare)
	return slices.Compact(out)
}

// podsOf are the pods of a cluster that have some labels, those with the same labels as one; none without labels. Those on the network of
// their node are outside: policies do not select them.
func (n *Network) podsOf(cluster, namespace string, with map[string]string) (out []Side) {
	c := n.clusters[cluster]
	if c == nil || len(with) == 0 {
		return nil
	}
	from, _ := slices.BinarySearchFunc(c.Pods, namespace, func(p *corev1.Pod, namespace string) int {
		if p.Namespace < namespace {
			return -1
		}
		return 1
	})
	selector := labels.Set(with).AsSelectorPreValidated()
	for _, p := range c.Pods[from:] {
		if p.Namespace != namespace {
			break
		}
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		side := Side{Namespace: namespace, Labels: p.Labels}
		if p.Spec.HostNetwork {
			side = Side{}
		}
		at := slices.IndexFunc(out, func(o Side) bool { return o.Namespace == side.Namespace && maps.Equal(o.Labels, side.Labels) })
		if at < 0 {
			at, out = len(out), append(out, side)
		}
		for _, ip := range p.Status.PodIPs {
			out[at].Addresses = append(out[at].Addresses, ip.IP)
		}
		if len(p.Status.PodIPs) == 0 && p.Status.PodIP != "" {
			out[at].Addresses = append(out[at].Addresses, p.Status.PodIP)
		}
	}
	return out
}

func callersOf(w *discoveryv1.Workload) (out []Side) {
	k := w.Spec.Kubernetes
	for _, l := range append([]map[string]string{k.PodLabels}, k.OtherPodLabels...) {
		out = append(out, Side{Namespace: k.Controller.Namespace, Labels: l})
	}
	return out
}

// endpoints are the pods of a service without a selector, or of which none is there.
func endpoints(k *discoveryv1.KubeService) (out []Side) {
	for i := range k.EndpointSubsets {
		for _, e := range k.EndpointSubsets[i].Endpoints {
			out = append(out, Side{Namespace: k.Ref.Namespace, Labels: e.Labels, Addresses: append([]string{e.IpAddress}, e.OtherAddresses...)})
		}
	}
	if len(out) == 0 && len(k.WorkloadSelectorLabels) > 0 {
		out = append(out, Side{Namespace: k.Ref.Namespace, Labels: k.WorkloadSelectorLabels})
	}
	return out
}

// namedPorts are the ports of pods that a service calls by name.
func namedPorts(k *discoveryv1.KubeService) map[string]uint32 {
	out := map[string]uint32{}
	for _, p := range k.Ports {
		for i := range k.EndpointSubsets {
			if number, serves := snapshot.SubsetPort(k, &k.EndpointSubsets[i], p.Port); serves && p.TargetPortName != "" {
				out[p.TargetPortName] = number
			}
		}
	}
	return out
}

func addresses(pods []Side) (out []string) {
	for _, p := range pods {
		out = append(out, p.Addresses...)
	}
	return out
}
