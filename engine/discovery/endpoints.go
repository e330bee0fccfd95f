package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// endpointSubsets lists the ready endpoints of a Service by the ports that
// they serve, and by whether they have a proxy: Services have slices by address family and
// by hundreds, but that is all that makes an endpoint differ. Both ascending. Other clusters get
// addresses of pods with a proxy only: who may write EndpointSlices in one namespace must not
// lead the traffic of others to addresses of its choice, such as that of an API server.
func (x *Index) endpointSubsets(kinds []*detected, c *candidate, name string) []discoveryv1.EndpointSubset {
	b := &endpointBuilder{Index: x, proxied: func(*corev1.Pod) bool { return true }}
	if k := kindOf(kinds, c.mesh); k != nil {
		b.proxied = func(pod *corev1.Pod) bool { _, ok := k.Sidecar(x, pod); return ok }
		b.ambient = func(pod *corev1.Pod) bool { return c.mesh.Ambient && (ambient{x}).modeOfPod(k, pod).IsAmbient() }
		b.inbound = k.Inbound
	}
	families := map[endpointv1.AddressType]bool{}
	for _, slice := range x.slices[keyOf(c.service)] {
		families[slice.AddressType] = true
	}
	if families[endpointv1.AddressTypeIPv4] && families[endpointv1.AddressTypeIPv6] {
		b.byPod = map[podPart]int{}
	}
	for _, slice := range x.slices[keyOf(c.service)] {
		if slice.AddressType != endpointv1.AddressTypeFQDN {
			b.addSlice(slice)
		}
	}
	for i := range c.machines {
		b.addMachine(c.service, &c.machines[i])
	}
	if len(b.foreign) > 0 && len(c.workloads) > 0 {
		x.reportForeign(c.service, name, b.foreign)
	}
	out := b.subsets
	c.bare = b.bare
	for i := range out {
		slices.SortStableFunc(out[i].Endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.IpAddress, b.IpAddress) })
		// While slices are rearranged, an endpoint may be in two of them.
		out[i].Endpoints = slices.CompactFunc(out[i].Endpoints, func(a, b discoveryv1.Endpoint) bool { return a.IpAddress == b.IpAddress })
	}
	slices.SortFunc(out, func(a, b discoveryv1.EndpointSubset) int {
		return cmp.Or(slices.CompareFunc(a.Ports, b.Ports, comparePorts), boolCompare(a.Machines, b.Machines), boolCompare(a.NoProxy, b.NoProxy), boolCompare(a.Ambient, b.Ambient))
	})
	return out
}

// boolCompare has false first.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// reportForeign says that a Service has addresses that are not those of its pods, which
// matters on the Destination of a name.
func (x *Index) reportForeign(s *corev1.Service, name string, addresses []string) {
	const few = 3
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	text := strings.Join(addresses[:min(few, len(addresses))], ", ")
	if more := len(addresses) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	x.Report(snapshot.Issue{
		Code: snapshot.EndpointIgnored, Severity: snapshot.Warning, Ref: x.serviceRef(s),
		Target:  snapshot.Ref{Kind: snapshot.Destination, Namespace: x.namespace, Name: name},
		Message: fmt.Sprintf("its EndpointSlices have addresses that are not those of the pods that they name in its namespace (%s): no policy protects them, and other clusters do not get them", text),
		Hint:    "give the Service a selector, and let Kubernetes write its EndpointSlices; for addresses outside of the cluster, write an external Destination",
	})
}

// endpointBuilder collects the endpoints of one Service.
type endpointBuilder struct {
	*Index
	// proxied reports whether a pod runs a proxy of the mesh of the Service.
	proxied func(*corev1.Pod) bool
	// ambient reports whether a pod without one is in ambient mode; nil if none is.
	ambient func(*corev1.Pod) bool
	// inbound is Detector.Inbound; nil if proxies see all.
	inbound func(*corev1.Pod, uint32) string
	subsets []discoveryv1.EndpointSubset
	// foreign are the addresses that are not those of pods, and bare is how many pods have no proxy.
	foreign []string
	bare    int
	// byPod finds the endpoint of a pod in a subset; nil if no pod has two families.
	byPod map[podPart]int
}

// podPart is a pod in one of the subsets.
type podPart struct {
	pod    *corev1.Pod
	subset int
}

// addSlice adds a slice's ready endpoints to the subset with the same ports. The
// addresses that are not those of pods have no proxy.
func (b *endpointBuilder) addSlice(slice *endpointv1.EndpointSlice) {
	ports := endpointPorts(slice)
	at := [3]int{-1, -1, -1} // with a proxy, without, and in ambient mode
	for i := range slice.Endpoints {
		from := &slice.Endpoints[i]
		if !isReady(from) {
			continue
		}
		pod, is := b.memberOf(slice.Namespace, from)
		switch is {
		case ofPod:
		case notOfPod:
			b.foreign = append(b.foreign, from.Addresses[0])
		case unsettled:
			continue
		}
		without := 0
		switch {
		case pod != nil && b.proxied(pod):
		case pod != nil && b.ambient != nil && b.ambient(pod):
			without = 2
		default:
			without = 1
			if pod != nil {
				b.bare++
			}
		}
		if past := b.portsPast(ports, pod); without == 0 && past != nil {
			b.add(b.subset(discoveryv1.EndpointSubset{Ports: past}, 1), b.endpoint(slice.Namespace, pod, from), pod)
			continue
		}
		if at[without] < 0 {
			at[without] = b.subset(discoveryv1.EndpointSubset{Ports: ports, NoProxy: without > 0, Ambient: without == 2}, len(slice.Endpoints))
		}
		b.add(at[without], b.endpoint(slice.Namespace, pod, from), pod)
	}
}

// portsPast are ports of a pod of which connections to some pass its proxy by; nil if there are none of these.
func (b *endpointBuilder) portsPast(ports []discoveryv1.EndpointPort, pod *corev1.Pod) (out []discoveryv1.EndpointPort) {
	if b.inbound == nil || pod == nil {
		return nil
	}
	for i := range ports {
		past := b.inbound(pod, ports[i].Port)
		if past == "" {
			continue
		}
		if out == nil {
			out = slices.Clone(ports)
		}
		out[i].PastProxy = past
	}
	return out
}

// subset finds or adds the one that is like another one, but for endpoints.
func (b *endpointBuilder) subset(like discoveryv1.EndpointSubset, size int) int {
	at := slices.IndexFunc(b.subsets, func(s discoveryv1.EndpointSubset) bool {
		return s.NoProxy == like.NoProxy && s.Machines == like.Machines && s.Ambient == like.Ambient && slices.Equal(s.Ports, like.Ports)
	})
	if at < 0 {
		at, like.Endpoints = len(b.subsets), make([]discoveryv1.Endpoint, 0, size)
		b.subsets = append(b.subsets, like)
	}
	return at
}

// add adds an endpoint of a pod. The address of a second family goes to the endpoint that the pod has; the first is that of the
// pod's own first family.
func (b *endpointBuilder) add(to int, e discoveryv1.Endpoint, pod *corev1.Pod) {
	list := &b.subsets[to].Endpoints
	if b.byPod != nil && pod != nil {
		at := podPart{pod, to}
		if known, ok := b.byPod[at]; ok {
			was := &(*list)[known]
			was.OtherAddresses = append(was.OtherAddresses, was.IpAddress, e.IpAddress)
			slices.Sort(was.OtherAddresses)
			was.OtherAddresses = slices.Compact(was.OtherAddresses)
			if was.IpAddress = pod.Status.PodIP; !slices.Contains(was.OtherAddresses, was.IpAddress) {
				was.IpAddress = was.OtherAddresses[0]
			}
			if was.OtherAddresses = slices.DeleteFunc(was.OtherAddresses, func(a string) bool { return a == was.IpAddress }); len(was.OtherAddresses) == 0 {
				was.OtherAddresses = nil
			}
			return
		}
		b.byPod[at] = len(*list)
	}
	*list = append(*list, e)
}

// isReady: not knowing counts as ready, as Kubernetes has it.
func isReady(e *endpointv1.Endpoint) bool {
	return len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready)
}

// endpointPorts lists a slice's ports, ascending.
func endpointPorts(slice *endpointv1.EndpointSlice) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for i := range slice.Ports {
		from := &slice.Ports[i]
		if from.Port == nil {
			continue // every port: nothing that could be named
		}
		out = append(out, discoveryv1.EndpointPort{
			Port:        uint32(*from.Port),
			Name:        value(from.Name),
			Protocol:    string(value(from.Protocol)),
			AppProtocol: value(from.AppProtocol),
		})
	}
	slices.SortFunc(out, comparePorts)
	return out
}

func comparePorts(a, b discoveryv1.EndpointPort) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.AppProtocol, b.AppProtocol), strings.Compare(a.PastProxy, b.PastProxy),
	)
}

// endpoint describes one endpoint by its first address; Kubernetes gives others no
// meaning. Its labels are those of its workload, which define subsets, rather than all
// labels of its pod.
func (x *Index) endpoint(namespace string, pod *corev1.Pod, from *endpointv1.Endpoint) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{IpAddress: from.Addresses[0]}
	node := x.nodes[value(from.NodeName)]
	if pod != nil {
		node = x.nodes[cmp.Or(value(from.NodeName), pod.Spec.NodeName)]
		if ctl := x.byPod[key{namespace, pod.Name}]; ctl != nil {
			out.Labels = ctl.template.Labels
		}
	}
	zone := cmp.Or(value(from.Zone), zoneOf(node))
	if zone != "" {
		out.SubLocality = &discoveryv1.SubLocality{Zone: zone, SubZone: nodeLabel(node, x.subzones...)}
	}
	return out
}
