package netpolicy

import (
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
}

// NewNetwork reads clusters; nil if none has a NetworkPolicy.
func NewNetwork(clusters []*snapshot.Cluster) *Network {
	n := &Network{clusters: map[string]*snapshot.Cluster{}, policies: map[string]*Policies{}}
	for _, c := range clusters {
		if p := New(c); p != nil {
			n.policies[c.Name] = p
		}
		n.clusters[c.Name] = c
	}
	if len(n.policies) == 0 {
		return nil
	}
	return n
}

// Finding is a connection on the way from callers to a service that NetworkPolicies may end.
type Finding struct {
	Verdict Verdict
	// Cluster is where the policies By are, ascending.
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

// Way is how callers get to a service.
type Way struct {
	From *discoveryv1.Workload
	// Mesh is that of the callers.
	Mesh *snapshot.MeshPlan
	To   *snapshot.DestinationPlan
	// Ports are those of its pods.
	Ports []uint32
}

// Check returns the connections on a way that NetworkPolicies may end, in the order of the way.
func (n *Network) Check(w Way) (out []Finding) {
	k := w.To.Destination.Spec.KubeService
	if n == nil || k == nil || w.To.Mesh == nil || w.Mesh == nil || w.From.Spec.Kubernetes == nil {
		return nil
	}
	home, there := w.Mesh.Cluster, w.To.Mesh.Cluster
	callers, pods := callersOf(w.From), n.podsOf(there, k.Ref.Namespace, k.WorkloadSelectorLabels)
	if len(pods) == 0 {
		pods = endpoints(k)
	}
	names := namedPorts(k)
	for i := range pods {
		pods[i].Ports = names
	}
	outside := []Side{{}}
	add := func(cluster string, from, to End, sources, targets []Side, ports ...uint32) {
		for _, port := range ports {
			if verdict, by := n.worst(cluster, sources, targets, port); verdict != Passes {
				out = append(out, Finding{Verdict: verdict, Cluster: cluster, By: by, From: from, To: to, Port: port})
			}
		}
	}
	switch {
	case home == there:
		add(home, Callers, Pods, callers, pods, w.Ports...)
	case !w.To.ThroughGateways(w.Mesh):
		add(home, Callers, Pods, callers, []Side{{Addresses: addresses(pods)}}, w.Ports...)
		add(there, Callers, Pods, outside, pods, w.Ports...)
	default:
		before, sources := Callers, callers
		if w.To.Federation.Limited {
			before, sources = OwnGateways, nil
			for _, g := range w.Mesh.Gateways {
				own := n.podsOf(home, g.Service.Namespace, g.Selector)
				add(home, Callers, OwnGateways, callers, own, g.ContainerPort)
				sources = append(sources, own...)
			}
		}
		for _, g := range w.To.Mesh.Gateways {
			gateways := n.podsOf(there, g.Service.Namespace, g.Selector)
			add(home, before, Gateways, sources, []Side{{Addresses: g.Addresses}}, g.Port)
			add(there, before, Gateways, outside, gateways, g.ContainerPort)
			add(there, Gateways, Pods, gateways, pods, w.Ports...)
		}
	}
	return out
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

// Isolating are the policies that isolate pods of a service for connections into them, and do not let everything in.
func (n *Network) Isolating(d *snapshot.DestinationPlan) (out []snapshot.Ref) {
	k := d.Destination.Spec.KubeService
	if n == nil || k == nil || d.Mesh == nil {
		return nil
	}
	for _, pod := range n.podsOf(d.Mesh.Cluster, k.Ref.Namespace, k.WorkloadSelectorLabels) {
		out = append(out, n.policies[d.Mesh.Cluster].Selects(pod)...)
	}
	slices.SortFunc(out, snapshot.Ref.Compare)
	return slices.Compact(out)
}

// podsOf are the pods of a cluster that have some labels, each kind of labels once; none without labels.
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
	for _, p := range c.Pods[from:] {
		if p.Namespace != namespace {
			break
		}
		if labels.SelectorFromSet(with).Matches(labels.Set(p.Labels)) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			side := Side{Namespace: namespace, Labels: p.Labels}
			for _, ip := range p.Status.PodIPs {
				side.Addresses = append(side.Addresses, ip.IP)
			}
			if len(side.Addresses) == 0 && p.Status.PodIP != "" {
				side.Addresses = []string{p.Status.PodIP}
			}
			out = append(out, side)
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
