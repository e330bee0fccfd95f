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
// they serve: Services have slices by address family and by hundreds, but an
// endpoint's ports are all that makes it differ. Both ascending. A Service
// without workloads of a mesh has none: mutual TLS would not reach them. Only
// addresses of pods are used: who may write EndpointSlices in one namespace must not
// lead the traffic of others to addresses of its choice, such as that of an API server.
func (x *Index) endpointSubsets(s *corev1.Service, name string, backing []*workload) []discoveryv1.EndpointSubset {
	if len(backing) == 0 && len(s.Spec.Selector) > 0 {
		return nil
	}
	var out []discoveryv1.EndpointSubset
	var foreign []string
	for _, slice := range x.slices[keyOf(s)] {
		if slice.AddressType != endpointv1.AddressTypeFQDN {
			out = x.addSlice(out, slice, &foreign)
		}
	}
	if len(foreign) > 0 {
		x.reportForeign(s, name, foreign)
	}
	if len(backing) == 0 {
		return nil
	}
	for i := range out {
		slices.SortStableFunc(out[i].Endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.IpAddress, b.IpAddress) })
		// While slices are rearranged, an endpoint may be in two of them.
		out[i].Endpoints = slices.CompactFunc(out[i].Endpoints, func(a, b discoveryv1.Endpoint) bool { return a.IpAddress == b.IpAddress })
	}
	slices.SortFunc(out, func(a, b discoveryv1.EndpointSubset) int { return slices.CompareFunc(a.Ports, b.Ports, comparePorts) })
	return out
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
		Message: fmt.Sprintf("its EndpointSlices have addresses that are not those of the pods that they name in its namespace (%s); other clusters do not get them", text),
		Hint:    "give the Service a selector, and let Kubernetes write its EndpointSlices; for addresses outside of the cluster, write an external Destination",
	})
}

// membership says whether an address is that of a pod of its namespace.
type membership uint8

const (
	// ofPod: the endpoint names a pod, which has the address.
	ofPod membership = iota
	// unsettled: the pod is not known, or has no address. Pods and EndpointSlices are
	// watched apart, so that is so for a moment with each pod that comes or goes.
	unsettled
	// notOfPod: the endpoint names no pod of the namespace, or one with other addresses.
	notOfPod
)

func (x *Index) memberOf(namespace string, e *endpointv1.Endpoint) membership {
	target := e.TargetRef
	if target == nil || target.Kind != "Pod" || cmp.Or(target.Namespace, namespace) != namespace {
		return notOfPod
	}
	pod := x.podsByKey[key{namespace, target.Name}]
	switch {
	case pod == nil, pod.Status.PodIP == "" && len(pod.Status.PodIPs) == 0:
		return unsettled
	case pod.Status.PodIP == e.Addresses[0], slices.Contains(pod.Status.PodIPs, corev1.PodIP{IP: e.Addresses[0]}):
		return ofPod
	}
	return notOfPod
}

// addSlice adds a slice's ready endpoints to the subset with the same ports. The
// addresses that are not those of pods go to foreign instead.
func (x *Index) addSlice(subsets []discoveryv1.EndpointSubset, slice *endpointv1.EndpointSlice, foreign *[]string) []discoveryv1.EndpointSubset {
	ports := endpointPorts(slice)
	at := slices.IndexFunc(subsets, func(s discoveryv1.EndpointSubset) bool { return slices.Equal(s.Ports, ports) })
	for i := range slice.Endpoints {
		from := &slice.Endpoints[i]
		if !isReady(from) {
			continue
		}
		switch x.memberOf(slice.Namespace, from) {
		case ofPod:
		case notOfPod:
			*foreign = append(*foreign, from.Addresses[0])
			continue
		case unsettled:
			continue
		}
		if at < 0 {
			at = len(subsets)
			subsets = append(subsets, discoveryv1.EndpointSubset{
				Ports: ports, Endpoints: make([]discoveryv1.Endpoint, 0, len(slice.Endpoints)),
			})
		}
		subsets[at].Endpoints = append(subsets[at].Endpoints, x.endpoint(slice.Namespace, from))
	}
	return subsets
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
		strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.AppProtocol, b.AppProtocol),
	)
}

// endpoint describes one endpoint by its first address; Kubernetes gives others no
// meaning. Its labels are those of its workload, which define subsets, rather than all
// labels of its pod.
func (x *Index) endpoint(namespace string, from *endpointv1.Endpoint) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{IpAddress: from.Addresses[0]}
	node := x.nodes[value(from.NodeName)]
	if pod := from.TargetRef; pod != nil && pod.Kind == "Pod" {
		if ctl := x.byPod[key{namespace, pod.Name}]; ctl != nil {
			out.Labels = ctl.template.Labels
		}
	}
	zone := cmp.Or(value(from.Zone), zoneOf(node))
	if zone != "" {
		out.SubLocality = &discoveryv1.SubLocality{Zone: zone, SubZone: nodeLabel(node, subzoneLabel)}
	}
	return out
}
