package discovery

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// externalAddresses lists where a Service can be reached from outside its
// cluster: each address once, IPs first, ascending. externalIPs are not among them: the
// editor of a Service can write any address there, and status only the cluster.
func (n nodes) externalAddresses(s *corev1.Service, backing []*workload) []discoveryv1.ExternalAddress {
	var out []discoveryv1.ExternalAddress
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" {
				out = append(out, discoveryv1.ExternalAddress{Ip: ingress.IP})
			} else if ingress.Hostname != "" {
				out = append(out, discoveryv1.ExternalAddress{DnsName: ingress.Hostname})
			}
		}
	case corev1.ServiceTypeNodePort:
		out = nodeAddresses(n.of(backing))
	}
	slices.SortFunc(out, func(a, b discoveryv1.ExternalAddress) int {
		return cmp.Or(strings.Compare(a.DnsName, b.DnsName), strings.Compare(a.Ip, b.Ip))
	})
	return slices.Compact(out)
}

// nodes are those of a cluster, by name.
type nodes map[string]*corev1.Node

// of lists the nodes that run pods of the workloads, each once.
func (n nodes) of(backing []*workload) []*corev1.Node {
	var out []*corev1.Node
	seen := map[string]bool{}
	for _, wl := range backing {
		for _, pod := range wl.controller.pods {
			name := pod.Spec.NodeName
			if node := n[name]; node != nil && !seen[name] {
				seen[name] = true
				out = append(out, node)
			}
		}
	}
	return out
}

// nodeAddresses are the addresses at which node ports answer the outside. Nodes that have none stay out where others have some;
// where none has, they are those inside, which are reachable where the clusters share a network. A host name is never one: nothing
// resolves it outside of the cluster.
func nodeAddresses(nodes []*corev1.Node) []discoveryv1.ExternalAddress {
	for _, types := range [][]corev1.NodeAddressType{{corev1.NodeExternalIP, corev1.NodeExternalDNS}, {corev1.NodeInternalIP}} {
		var out []discoveryv1.ExternalAddress
		for _, n := range nodes {
			out = append(out, firstAddresses(n, types)...)
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// firstAddresses are those of the first of some types that a node has.
func firstAddresses(n *corev1.Node, types []corev1.NodeAddressType) (out []discoveryv1.ExternalAddress) {
	for _, t := range types {
		for _, a := range n.Status.Addresses {
			switch {
			case a.Type != t || a.Address == "":
			case t == corev1.NodeExternalDNS:
				out = append(out, discoveryv1.ExternalAddress{DnsName: a.Address})
			default:
				out = append(out, discoveryv1.ExternalAddress{Ip: a.Address})
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
