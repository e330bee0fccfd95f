package discovery

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says what answers for Services without a selector: users or controllers other than that of Kubernetes write their
// EndpointSlices, or they only stand for another name.

// isAlias reports whether a Service stands for another name. Whatever else it says is ignored, a selector too
// (kubernetes.io: Service, ExternalName).
func isAlias(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeExternalName }

// backing says what answers for Services.
type backing struct{ *Index }

// aliases are the Services that stand for other names.
func aliases(services []*corev1.Service) []snapshot.Alias {
	var out []snapshot.Alias
	for _, s := range services {
		if isAlias(s) {
			out = append(out, snapshot.Alias{Namespace: s.Namespace, Name: s.Name, For: s.Spec.ExternalName})
		}
	}
	return out
}

// reportAlias says that a Service which asks to be a destination can be none.
func reportAlias(x *Index, s *corev1.Service) {
	if s.Annotations[snapshot.DiscoverServiceAnnotation] != "true" {
		return
	}
	what, hint := (&snapshot.Alias{Namespace: s.Namespace, Name: s.Name, For: s.Spec.ExternalName}).Reason()
	x.Report(snapshot.Warnf(snapshot.NoDestination, "remove the annotation "+snapshot.DiscoverServiceAnnotation+"; "+hint,
		"the annotation for discovery has no effect: %s", what).On(x.serviceRef(s), snapshot.Ref{}))
}

// namedWorkloads are the workloads of the pods that the EndpointSlices of a Service without a selector name, ready or not.
func (x backing) namedWorkloads(s *corev1.Service, of map[*controller]*workload) []*workload {
	var out []*workload
	for _, slice := range x.slices[keyOf(s)] {
		if slice.AddressType == endpointv1.AddressTypeFQDN {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if len(e.Addresses) == 0 {
				continue
			}
			if pod, is := x.memberOf(slice.Namespace, e); is == ofPod {
				if wl := of[x.byPod[keyOf(pod)]]; wl != nil && !slices.Contains(out, wl) {
					out = append(out, wl)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b *workload) int { return strings.Compare(a.object.Name, b.object.Name) })
	return out
}

// membership says whether an address is that of a pod of its namespace.
type membership uint8

const (
	// ofPod: the endpoint names a pod, which has the address, or names none and has the address of one.
	ofPod membership = iota
	// unsettled: the pod is not known, or has no address of the family. Pods and EndpointSlices are
	// watched apart, so that is so for a moment with each pod that comes or goes.
	unsettled
	// notOfPod: the endpoint names no pod of the namespace, or one with other addresses.
	notOfPod
)

// memberOf is the pod of an endpoint, which is not nil if it is ofPod. Where an endpoint names none, Istio takes a pod of the
// namespace that has the address (pilot/pkg/serviceregistry/kube/controller, getPod).
func (x *Index) memberOf(namespace string, e *endpointv1.Endpoint) (*corev1.Pod, membership) {
	target := e.TargetRef
	if target == nil || target.Kind != podKind {
		if pod := x.podAt(namespace, e.Addresses[0]); pod != nil {
			return pod, ofPod
		}
		return nil, notOfPod
	}
	if cmp.Or(target.Namespace, namespace) != namespace {
		return nil, notOfPod
	}
	pod := x.podsByKey[key{namespace, target.Name}]
	switch {
	case pod == nil, pod.Status.PodIP == "" && len(pod.Status.PodIPs) == 0:
		return nil, unsettled
	case hasAddress(pod, e.Addresses[0]):
		return pod, ofPod
	case len(pod.Status.PodIPs) == 0 && otherFamily(pod.Status.PodIP, e.Addresses[0]):
		return nil, unsettled // only the list has both (PodStatus.podIPs)
	}
	return nil, notOfPod
}

// otherFamily reports whether of two addresses one is of IPv4 and one of IPv6.
func otherFamily(a, b string) bool {
	first, err := netip.ParseAddr(a)
	second, also := netip.ParseAddr(b)
	return err == nil && also == nil && first.Is4() != second.Is4()
}

func hasAddress(pod *corev1.Pod, address string) bool {
	return pod.Status.PodIP == address || slices.Contains(pod.Status.PodIPs, corev1.PodIP{IP: address})
}

// podAt is the pod of a namespace with an address; nil if there is none. Those with the address of their node are left out: others
// have it, too.
func (x *Index) podAt(namespace, address string) *corev1.Pod {
	if x.podsAt == nil {
		x.podsAt = map[key]*corev1.Pod{}
		add := func(pod *corev1.Pod, address string) {
			if at := (key{pod.Namespace, address}); address != "" && x.podsAt[at] == nil {
				x.podsAt[at] = pod
			}
		}
		for _, pod := range x.pods {
			if pod.Spec.HostNetwork || hasEnded(pod) {
				continue
			}
			add(pod, pod.Status.PodIP)
			for _, also := range pod.Status.PodIPs {
				add(pod, also.IP)
			}
		}
	}
	return x.podsAt[key{namespace, address}]
}

// answers reports whether an EndpointSlice of a Service says what answers for it: pods that are known, or no pods.
func (x backing) answers(service key) bool {
	for _, slice := range x.slices[service] {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if len(e.Addresses) == 0 {
				continue
			}
			if _, is := x.memberOf(slice.Namespace, e); is != unsettled {
				return true
			}
		}
	}
	return false
}

// hasNoProxies reports whether something answers for a Service, and nothing of it is a pod of the mesh. One without any endpoints may
// get some, or be there for its name only; one whose selector matches nothing loses those that it has.
func (x backing) hasNoProxies(c *candidate) bool {
	if len(c.workloads) > 0 {
		return false
	}
	selector := c.service.Spec.Selector
	if len(c.machines) == 0 && (!x.answers(keyOf(c.service)) || len(selector) > 0 && !x.selectsAny(c.service.Namespace, selector)) {
		return false
	}
	return !slices.ContainsFunc(x.slices[keyOf(c.service)], func(slice *endpointv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(e endpointv1.Endpoint) bool {
			if len(e.Addresses) == 0 {
				return false
			}
			_, is := x.memberOf(slice.Namespace, &e)
			return is == unsettled
		})
	})
}

// reportProxies says which part of what answers for the Service of a Destination runs no proxy of its mesh.
func (x backing) reportProxies(d *discoveryv1.Destination, barePods int) {
	k := d.Spec.KubeService
	issue := snapshot.Issue{
		Code: snapshot.ProxyMissing, Severity: snapshot.Warning, Target: snapshot.RefOf(snapshot.Destination, d),
		Ref: snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name},
	}
	switch all, bare := snapshot.EndpointCounts(k); {
	case snapshot.MachineCount(k) > 0 && snapshot.MachineCount(k) == all: // it is not federated, which says why
		return
	case k.NoProxies:
		issue.Message = "nothing that answers for it is a pod with a proxy of the mesh: no policy protects it, and callers in other clusters do not reach it"
		issue.Hint = "add the proxy to the pods behind it, and let its EndpointSlices name them; for addresses outside of the cluster, write an external Destination"
	case barePods > 0: // other addresses have an issue of their own
		issue.Message = snapshot.NoProxyText(bare, all)
		issue.Hint = "have the proxy injected into all pods of the Service, and restart those without; or select only those with it"
	default:
		return
	}
	x.Report(issue)
}

// reportMachines says that other clusters do not get the addresses of machines behind the Service of a Destination.
func (x backing) reportMachines(d *discoveryv1.Destination) {
	k := d.Spec.KubeService
	if n := snapshot.MachineCount(k); n > 0 {
		x.Report(snapshot.Issue{
			Code: snapshot.EndpointIgnored, Severity: snapshot.Info, Target: snapshot.RefOf(snapshot.Destination, d),
			Ref:     snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name},
			Message: snapshot.MachineText(k),
			Hint:    "let pods answer as well where other clusters call it",
		})
	}
}

// reportPastProxy says which ports behind the Service of a Destination pass the proxies of pods by.
func (x backing) reportPastProxy(d *discoveryv1.Destination) {
	k := d.Spec.KubeService
	if text := snapshot.PastProxyText(k); text != "" {
		x.Report(snapshot.Issue{
			Code: snapshot.ProxyMissing, Severity: snapshot.Warning, Target: snapshot.RefOf(snapshot.Destination, d),
			Ref:     snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name},
			Message: text, Hint: pastProxyHint,
		})
	}
}

// pastProxyHint says how to have proxies see a port.
const pastProxyHint = "leave the port to the proxies in the traffic annotations of the pods and the settings of their injector"

// reportPorts says that endpoints of the Service of a Destination do not serve one of its ports.
func (x backing) reportPorts(d *discoveryv1.Destination) {
	k := d.Spec.KubeService
	all, _ := snapshot.EndpointCounts(k)
	for _, p := range k.Ports {
		without := 0
		for i := range k.EndpointSubsets {
			if _, serves := snapshot.SubsetPort(k, &k.EndpointSubsets[i], p.Port); !serves {
				without += len(k.EndpointSubsets[i].Endpoints)
			}
		}
		if without == 0 {
			continue
		}
		x.Report(snapshot.Issue{
			Code: snapshot.PortsDiffer, Severity: snapshot.Warning, Target: snapshot.RefOf(snapshot.Destination, d),
			Ref:     snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name},
			Message: notServed(without, all, p.Port),
			Hint:    "give a port of the pods the name that the Service has as its targetPort, or name the port by its number",
		})
	}
}

// notServed says how many of all endpoints do not serve a port.
func notServed(without, all int, port uint32) string {
	switch {
	case without == all:
		return fmt.Sprintf("none of its endpoints serves port %d", port)
	case without == 1:
		return fmt.Sprintf("1 of %d endpoints does not serve port %d: requests for it go to the others", all, port)
	}
	return fmt.Sprintf("%d of %d endpoints do not serve port %d: requests for it go to the others", without, all, port)
}
