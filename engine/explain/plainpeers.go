package explain

import (
	"github.com/meshctl/meshctl/engine/snapshot"
)

// plainByPeers says why mutual TLS is turned off on the way to a Destination of another mesh, which takes nothing else; empty if it is
// not. What makes its host known to the callers, and to the gateways in front of it, is in the namespace of each control plane, and what
// users wrote for that namespace decides (Istio, xds/endpoints: mtlsChecker and EndpointsWithMTLSFilter).
func plainByPeers(q *query, d *snapshot.DestinationPlan, how connection, with map[string]string) string {
	if d.Mesh.Ref == q.mesh.Ref || how.mutual() || how.plain != "" || how.other != "" || !q.mesh.Dialect.SPIFFE {
		return ""
	}
	gateways := []uint32{0}
	for _, gw := range d.Mesh.Gateways {
		gateways = append(gateways, gw.Port)
	}
	if by, off := turnedOff(q.outside, q.mesh, d, with, gateways); off {
		return byHandName(by) + " turns mutual TLS off for the services of other clusters, too, which take nothing else: limit it to the pods that need it"
	}
	if !d.ThroughGateways(q.mesh) || d.Mesh.Limited {
		return ""
	}
	if by, off := turnedOff(q.outside, d.Mesh, d, with, podPorts(d)); off {
		return byHandName(by) + " turns mutual TLS off for what the gateways of its mesh pass on, too, which is nothing else: limit it to the pods that need it"
	}
	return ""
}

// turnedOff is what turns mutual TLS off for the generated object of a Destination in the namespace of the control plane of a mesh, on
// one of some ports; false if nothing does.
func turnedOff(o *outside, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan, with map[string]string, ports []uint32) (by snapshot.Ref, off bool) {
	hand := o.byHand[mesh]
	if hand == nil {
		return by, false
	}
	of := &snapshot.PodQuery{Mesh: mesh, Namespace: mesh.Namespace}
	for _, e := range endpointsOf(d, with) {
		of.Pods = append(of.Pods, e.Labels)
	}
	if len(of.Pods) == 0 {
		of.Pods = append(of.Pods, nil)
	}
	for _, g := range hand.Guards(of) {
		for _, port := range ports {
			if tls, ref := g.TLS(port); tls == snapshot.TLSNone || tls == snapshot.TLSUnused {
				return ref, true
			}
		}
	}
	return by, false
}

// podPorts are the ports on which the pods of a Destination listen.
func podPorts(d *snapshot.DestinationPlan) []uint32 {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return nil
	}
	ports := make([]uint32, len(k.Ports))
	for i := range k.Ports {
		ports[i] = k.Ports[i].Port
	}
	return snapshot.PodPorts(k, ports)
}
