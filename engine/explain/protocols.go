package explain

import (
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about ports of which it is not certain whether the proxies of pods see requests on them, or only connections: by that,
// policies about requests let in other callers.

// unseenRequests names why the proxies of the pods of a Destination may not see what callers of a mesh send to a port of it as its Service
// says; 0 is any port.
func unseenRequests(x *Index, d *snapshot.DestinationPlan, callers *snapshot.MeshPlan, port uint32) (list []string) {
	k := d.Destination.Spec.KubeService
	if k == nil || d.Mesh == nil {
		return nil
	}
	for i := range k.Ports {
		p := &k.Ports[i]
		if port != 0 && p.Port != port || p.Protocol != "" && p.Protocol != "TCP" {
			continue
		}
		if isHTTP := dialectOf(d).IsHTTP(p); isHTTP && !x.outside.decides(d, p.Port) {
			continue // nothing decides about requests, and connections pass as well
		}
		if callers.Undetected != "" && snapshot.PortProtocol(*p) == "" {
			list = append(list, fmt.Sprintf("whether the proxies of pods of %s see requests on port %d, or only connections: its Service names no protocol, and %s", d.Ref.Name, p.Port, callers.Undetected))
		}
		if other := otherProtocol(x, d, callers, p); other != "" {
			list = append(list, fmt.Sprintf("whether the proxies of pods of %s see requests on port %d, or only connections: %s, and the oldest of the Services decides for all", d.Ref.Name, p.Port, other))
		}
	}
	return list
}

// decides reports whether anything decides who may call a port of a Destination.
func (o *outside) decides(d *snapshot.DestinationPlan, port uint32) bool {
	return d.Open() != snapshot.OpenByDefault || slices.ContainsFunc(o.podGroups(d, port, nil), func(g *podGroup) bool { return g.guard != nil || len(g.others) > 0 })
}

// otherProtocol says which other Service names another protocol for the port of the pods to which a port of a Destination leads; empty if
// none does, or one that the proxies of the callers do not have detected. Proxies have one listener for it (Istio,
// ListenerBuilder.getFilterChainsByServicePort).
func otherProtocol(x *Index, d *snapshot.DestinationPlan, callers *snapshot.MeshPlan, p *discoveryv1.KubeServicePort) string {
	k, sees := d.Destination.Spec.KubeService, dialectOf(d).IsHTTP(p)
	differs := func(o *snapshot.DestinationPlan, q *discoveryv1.KubeServicePort) bool {
		return dialectOf(o).IsHTTP(q) != sees || callers.Undetected != "" && snapshot.PortProtocol(*q) == ""
	}
	var names []string
	for _, o := range x.destinations {
		other := o.Destination.Spec.KubeService
		if o == d || other == nil || o.Mesh == nil || o.Mesh.Ref != d.Mesh.Ref || other.Ref.Namespace != k.Ref.Namespace {
			continue
		}
		for i := range other.Ports {
			q := &other.Ports[i]
			if (q.Protocol == "" || q.Protocol == "TCP") && differs(o, q) && sharesPort(k, p.Port, other, q.Port) {
				names = append(names, fmt.Sprintf("port %d of %s leads to the same port of pods as %s", q.Port, o.Ref.Name, protocolText(q)))
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[0]
}

func protocolText(p *discoveryv1.KubeServicePort) string {
	if protocol := snapshot.PortProtocol(*p); protocol != "" {
		return protocol
	}
	return "one whose protocol they detect"
}

// sharesPort reports whether ports of two services lead to the same port of a pod.
func sharesPort(a *discoveryv1.KubeService, portA uint32, b *discoveryv1.KubeService, portB uint32) bool {
	for i := range a.EndpointSubsets {
		at, serves := snapshot.SubsetPort(a, &a.EndpointSubsets[i], portA)
		if !serves {
			continue
		}
		for j := range b.EndpointSubsets {
			if other, also := snapshot.SubsetPort(b, &b.EndpointSubsets[j], portB); also && other == at && slices.ContainsFunc(a.EndpointSubsets[i].Endpoints, func(e discoveryv1.Endpoint) bool {
				return slices.ContainsFunc(b.EndpointSubsets[j].Endpoints, func(o discoveryv1.Endpoint) bool { return o.IpAddress == e.IpAddress })
			}) {
				return true
			}
		}
	}
	return false
}
