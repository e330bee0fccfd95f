package explain

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file names what applies to requests and is not evaluated: no answer of it is a bare one.

// notEvaluated is in sentences.
func notEvaluated(q *query, out *Why) (list []string) {
	if len(out.Outcomes) == 0 {
		return nil
	}
	list = slices.Concat(q.outside.defaultSettings(q.mesh), q.outside.filtersOfCallers(q.mesh, q.workload))
	if called := q.destinations[out.To]; called == nil || called.Mesh != nil && called.Mesh.Ref != q.mesh.Ref {
		list = append(list, unresolved(q, out.Host)...)
	}
	if _, contested := generatedSidecar(q); contested != "" && !isGateway(q.workload) {
		list = append(list, "whether the proxies of the callers know "+out.Host+": "+contested)
	}
	for i := range out.Outcomes {
		o := &out.Outcomes[i]
		d := q.destinations[o.Destination]
		if o.Idle || d == nil || d.Mesh == nil {
			continue
		}
		if d.Mesh.Ref == q.mesh.Ref {
			list = append(list, otherPods(q.mesh, d)...)
			list = append(list, twins(q.Index, d)...)
			list = append(list, otherNetworks(q, d)...)
		} else { // its gateway chooses the endpoints
			list = append(list, d.Mesh.EndpointNotes...)
		}
		if how := connectionOf(q.Index, q.workload, q.mesh, d, o.Port, o.Subset); how.named != "" {
			list = append(list, how.named)
		}
		list = append(list, nodeLocal(d, q.mesh)...)
		list = append(list, networkPolicies(q, d, cmp.Or(o.ServicePort, o.Port))...)
		list = append(list, unseenRequests(q.Index, d, q.mesh, cmp.Or(o.ServicePort, o.Port))...)
		if d.Mesh.InboundNote != "" {
			list = append(list, d.Mesh.InboundNote)
		}
		list = append(list, q.outside.filtersOfPods(d, cmp.Or(o.ServicePort, o.Port))...)
		if len(o.Hops) > 2 || len(o.Hops) == 2 && d.Mesh.Ref != q.mesh.Ref {
			list = append(list, q.outside.filtersOfGateways(d.Mesh)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// otherPods says that a control plane may know pods of other clusters, behind the name of a Destination or, for nil, behind any.
func otherPods(mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) []string {
	if mesh.MayKnowOthers == "" || d == nil && mesh.KeepsAllInCluster() || d != nil && keptInCluster(d) {
		return nil
	}
	return []string{"whether the control plane of mesh " + mesh.Ref.Name + ", which is installed to know other clusters (" + mesh.MayKnowOthers +
		"), has pods of these behind the same name: its remote secrets are not read; requests would also go there"}
}

// nodeLocal says that of the pods of a Destination only those answer that are on the node of what connects to them: callers of its own
// cluster, or the gateway through which others come (Istio, EndpointBuilder.filterIstioEndpoint). In flat networks, others get their
// addresses from generated objects, for which that does not hold; of a headless one, callers of its own cluster choose a pod by themselves.
func nodeLocal(d *snapshot.DestinationPlan, callers *snapshot.MeshPlan) []string {
	k := d.Destination.Spec.KubeService
	if k == nil || !k.NodeLocal || callers.Cluster == d.Mesh.Cluster && k.Headless || callers.Cluster != d.Mesh.Cluster && !d.ThroughGateways(callers) {
		return nil
	}
	whose := "the callers"
	if callers.Cluster != d.Mesh.Cluster {
		whose = "the gateway"
	}
	return []string{"which pods of " + d.Ref.Name + " are on the node of " + whose + ": only these get requests, as its internalTrafficPolicy is Local, and where there are none, they are answered with status 503"}
}

// defaultSettings are what a mesh sets for services for which nothing else does, and for the endpoints of all.
func (o *outside) defaultSettings(mesh *snapshot.MeshPlan) []string {
	if len(mesh.DefaultSettings) == 0 {
		return mesh.EndpointNotes
	}
	return append([]string{"defaultTrafficPolicy in the meshConfig of mesh " + mesh.Ref.Name + " sets " + strings.Join(mesh.DefaultSettings, " and ") +
		" for services for which nothing else does: requests above its limits are refused, and pods that fail get none for a while"}, mesh.EndpointNotes...)
}

// filters are the objects that change what proxies of pods do.
func (o *outside) filters(of *snapshot.PodQuery, side snapshot.ProxySide, whose string) (list []string) {
	hand := o.byHand[of.Mesh]
	if hand == nil {
		return nil
	}
	for _, x := range hand.Filters(of, side) {
		list = append(list, byHandName(x.Ref)+" applies to "+whose+", and "+x.What)
	}
	return list
}

// filtersOfCallers are those on the way out of a workload.
func (o *outside) filtersOfCallers(mesh *snapshot.MeshPlan, workload *discoveryv1.Workload) []string {
	k := workload.Spec.Kubernetes
	if k == nil {
		return nil
	}
	side := snapshot.SideOutbound
	if k.Gateway {
		side = snapshot.SideGateway
	}
	return o.filters(&snapshot.PodQuery{Mesh: mesh, Namespace: k.Controller.Namespace, Pods: append([]map[string]string{k.PodLabels}, k.OtherPodLabels...)}, side, "the callers")
}

// filtersOfPods are those on the way to a port of a Destination into its pods; 0 is any port.
func (o *outside) filtersOfPods(d *snapshot.DestinationPlan, port uint32) []string {
	of := o.podsOfDestination(d, nil)
	if of == nil {
		return nil
	}
	of.Ports = podPortsOf(d, port)
	return o.filters(of, snapshot.SideInbound, "pods of "+d.Ref.Name)
}

// filtersOfGateways are those on the way through the east-west gateways of a mesh.
func (o *outside) filtersOfGateways(mesh *snapshot.MeshPlan) (list []string) {
	for i := range mesh.Gateways {
		gw := &mesh.Gateways[i]
		list = append(list, o.filters(o.podsOfGateway(mesh, gw), snapshot.SideGateway, "east-west gateway "+shortName(gw.Service))...)
	}
	return list
}

// podsOfGateway are the pods of a gateway.
func (o *outside) podsOfGateway(mesh *snapshot.MeshPlan, gw *snapshot.GatewayPlan) *snapshot.PodQuery {
	of := &snapshot.PodQuery{Mesh: mesh, Namespace: gw.Service.Namespace}
	pods := podsOf(o.clusters[mesh.Cluster], gw.Service.Namespace, gw.Selector)
	for _, address := range slices.Sorted(maps.Keys(pods)) {
		of.Pods = append(of.Pods, pods[address])
	}
	return of
}

// unevaluatedAt is what applies to calls to a Destination, whoever the callers are, and is not evaluated.
func unevaluatedAt(x *Index, d *snapshot.DestinationPlan) []string {
	list := slices.Concat(otherPods(d.Mesh, d), twins(x, d), nodeLocal(d, d.Mesh), isolated(x, d), unseenRequests(x, d, d.Mesh, 0), x.outside.defaultSettings(d.Mesh))
	if d.Mesh.InboundNote != "" {
		list = append(list, d.Mesh.InboundNote)
	}
	list = append(list, x.outside.connectionSettings(d)...)
	return append(list, x.outside.filtersOfPods(d, 0)...)
}

// connectionSettings are what users set for callers of a Destination in its own mesh, as those in its namespace see it.
func (o *outside) connectionSettings(d *snapshot.DestinationPlan) (list []string) {
	hand, k := o.byHand[d.Mesh], d.Destination.Spec.KubeService
	if hand == nil || k == nil {
		return nil
	}
	h, _ := hand.ConnectionFor(&snapshot.HostQuery{Host: d.LocalFQDN, Mesh: d.Mesh, Home: k.Ref.Namespace}, &snapshot.PodQuery{Mesh: d.Mesh, Namespace: k.Ref.Namespace}, "")
	for _, text := range []string{h.Astray, h.Prefix, h.Named} {
		if text != "" {
			list = append(list, byHandName(h.Ref)+" "+text)
		}
	}
	return list
}

// unevaluatedIn is what applies in a mesh and is not evaluated.
func unevaluatedIn(x *Index, mesh snapshot.Ref) []string {
	m := x.meshes[mesh]
	if m == nil {
		return nil
	}
	list := slices.Concat(otherPods(m, nil), x.outside.defaultSettings(m))
	if text := ambientCallers(x, m); text != "" {
		list = append(list, text)
	}
	if m.InboundNote != "" {
		list = append(list, m.InboundNote)
	}
	if filters := filtersIn(x, m); filters != "" {
		list = append(list, filters)
	}
	return list
}

// filtersIn names the objects that change what proxies of a mesh do; empty if there is none.
func filtersIn(x *Index, m *snapshot.MeshPlan) string {
	if x.outside.byHand[m] == nil {
		return ""
	}
	found := map[string]bool{}
	for _, workload := range x.workloads {
		k := workload.Spec.Kubernetes
		if k == nil || x.meshOf(workload) != m {
			continue
		}
		of := &snapshot.PodQuery{Mesh: m, Namespace: k.Controller.Namespace, Pods: append([]map[string]string{k.PodLabels}, k.OtherPodLabels...)}
		sides := []snapshot.ProxySide{snapshot.SideOutbound, snapshot.SideInbound}
		if k.Gateway {
			sides = []snapshot.ProxySide{snapshot.SideGateway}
		}
		for _, side := range sides {
			for _, f := range x.outside.byHand[m].Filters(of, side) {
				found[f.Ref.String()] = true
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return firstOf(slices.Sorted(maps.Keys(found))) + verb(len(found), " applies", " apply") + " to workloads"
}
