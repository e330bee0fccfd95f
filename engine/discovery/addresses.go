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
func (x *Index) externalAddresses(s *corev1.Service, backing []*workload) []discoveryv1.ExternalAddress {
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
		for _, node := range x.nodesOf(backing) {
			out = append(out, nodeAddresses(node)...)
		}
	}
	slices.SortFunc(out, func(a, b discoveryv1.ExternalAddress) int {
		return cmp.Or(strings.Compare(a.DnsName, b.DnsName), strings.Compare(a.Ip, b.Ip))
	})
	return slices.Compact(out)
}

// nodesOf lists the nodes that run pods of the workloads, each once.
func (x *Index) nodesOf(backing []*workload) []*corev1.Node {
	var out []*corev1.Node
	seen := map[string]bool{}
	for _, wl := range backing {
		for _, pod := range wl.controller.pods {
			name := pod.Spec.NodeName
			if node := x.nodes[name]; node != nil && !seen[name] {
				seen[name] = true
				out = append(out, node)
			}
		}
	}
	return out
}

// nodeAddresses are the addresses at which a node port answers the outside:
// those of the best type that the node has. All types together would send a
// share of the requests to a name that resolves only inside.
func nodeAddresses(n *corev1.Node) []discoveryv1.ExternalAddress {
	types := []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeExternalDNS}
	if isKind(n) {
		types = append(types, corev1.NodeInternalIP)
	}
	for _, t := range append(types, corev1.NodeHostName) {
		var out []discoveryv1.ExternalAddress
		for _, a := range n.Status.Addresses {
			switch {
			case a.Type != t || a.Address == "":
			case t == corev1.NodeExternalDNS || t == corev1.NodeHostName:
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

// isKind recognises nodes of kind, whose internal addresses are reachable from other kind clusters on
// the same machine. Kind's kubelets say so; what images are on a node is for whoever runs pods to choose.
func isKind(n *corev1.Node) bool { return strings.HasPrefix(n.Spec.ProviderID, "kind://") }
