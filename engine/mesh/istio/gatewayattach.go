package istio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// attachedRoutes are the routes that an object of the Gateway API has for the requests or connections to one host of the mesh: istiod
// makes a VirtualService of them (Istio, HTTPRouteCollection).
type attachedRoutes struct {
	ref     snapshot.Ref
	created time.Time
	revisioned
	// home is the namespace of the Service or ServiceEntry. Callers in other namespaces than that of the object use it for requests only
	// if it is there, too (Istio, buildSidecarVirtualHostsForVirtualService); for connections, all do that see it.
	home string
	// key is what istiod merges: one VirtualService is made of all objects with the same.
	key  string
	http []httpRoute
	tcp  []*networking.TCPRoute
	tls  []*networking.TLSRoute
}

// attacher finds what is attached to hosts of a mesh.
type attacher struct {
	cluster, domain string
	entries         map[string]*istionetworkingv1.ServiceEntry
	// to is what was found, by host.
	to map[string][]attachedRoutes
	// atGateways: it is about routes for gateways, which send to other namespaces only what the grants allow.
	atGateways bool
	grants     []snapshot.APIObject
}

// attach finds the routes of the Gateway API of a cluster that are for its mesh, by host.
func attach(c *snapshot.Cluster) map[string][]attachedRoutes {
	a := &attacher{cluster: c.Name, domain: c.DomainOrDefault(), entries: map[string]*istionetworkingv1.ServiceEntry{}, to: map[string][]attachedRoutes{}}
	for o := range snapshot.Each[*istionetworkingv1.ServiceEntry](c.OfMeshes[snapshot.ServiceEntry]) {
		a.entries[o.Namespace+"/"+o.Name] = o
	}
	for o := range snapshot.Each[*gatewayv1.HTTPRoute](c.OfMeshes[snapshot.HTTPRoute]) {
		ref := a.refOf(snapshot.HTTPRoute, o)
		a.each(o, ref, o.Spec.ParentRefs, func(to *attachedRoutes, port uint32, _ string) { to.http = onPort(a.httpRoutesOf(o, ref), port) })
	}
	for o := range snapshot.Each[*gatewayv1.GRPCRoute](c.OfMeshes[snapshot.GRPCRoute]) {
		ref := a.refOf(snapshot.GRPCRoute, o)
		a.each(o, ref, o.Spec.ParentRefs, func(to *attachedRoutes, port uint32, _ string) { to.http = onPort(a.grpcRoutesOf(o, ref), port) })
	}
	for o := range snapshot.Each[*gatewayv1.TCPRoute](c.OfMeshes[snapshot.GatewayTCPRoute]) {
		a.each(o, a.refOf(snapshot.GatewayTCPRoute, o), o.Spec.ParentRefs, func(to *attachedRoutes, port uint32, _ string) {
			for _, r := range a.connections(a.refOf(snapshot.GatewayTCPRoute, o), o.Spec.Rules) {
				to.tcp = append(to.tcp, &networking.TCPRoute{Match: []*networking.L4MatchAttributes{{Port: port}}, Route: r})
			}
		})
	}
	for o := range snapshot.Each[*gatewayv1.TLSRoute](c.OfMeshes[snapshot.TLSRoute]) {
		a.each(o, a.refOf(snapshot.TLSRoute, o), o.Spec.ParentRefs, func(to *attachedRoutes, port uint32, host string) {
			names := o.Spec.Hostnames
			if len(names) == 0 {
				names = []string{host}
			}
			for _, r := range a.connections(a.refOf(snapshot.TLSRoute, o), o.Spec.Rules) {
				to.tls = append(to.tls, &networking.TLSRoute{Match: []*networking.TLSMatchAttributes{{Port: port, SniHosts: names}}, Route: r})
			}
		})
	}
	return a.to
}

func (a *attacher) refOf(kind snapshot.Kind, o metav1.Object) snapshot.Ref {
	return snapshot.Ref{Kind: kind, Cluster: a.cluster, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// each adds what an object has for each of its parents in the mesh.
func (a *attacher) each(o metav1.Object, ref snapshot.Ref, parents []gatewayv1.ParentReference, fill func(to *attachedRoutes, port uint32, host string)) {
	for i := range parents {
		p := &parents[i]
		home := valueOr(p.Namespace, ref.Namespace)
		port := uint32(0)
		if p.Port != nil {
			port = uint32(max(*p.Port, 0))
		}
		hosts := a.hostsOf(p, home)
		for _, host := range hosts {
			to := attachedRoutes{ref: ref, created: o.GetCreationTimestamp().Time, revisioned: revisionedOf(o), home: home, key: ref.Namespace + "~"}
			if port != 0 {
				to.key += strconv.FormatUint(uint64(port), 10) + "~"
			}
			to.key += host
			fill(&to, port, host)
			if len(to.http)+len(to.tcp)+len(to.tls) > 0 {
				a.to[host] = append(a.to[host], to)
			}
		}
	}
}

// gatewayKind is the kind of a parent that says none.
const gatewayKind = "Gateway"

// hostsOf are those of a parent; none if it is a gateway. Of a ServiceEntry that no user wrote, the name is the host.
func (a *attacher) hostsOf(p *gatewayv1.ParentReference, namespace string) []string {
	switch group, kind := valueOr(p.Group, gatewayv1.GroupVersion.Group), valueOr(p.Kind, gatewayKind); {
	case group == "" && kind == "Service":
		return []string{p.Name + "." + namespace + ".svc." + a.domain}
	case group == istioGroup && kind == "ServiceEntry":
		if entry := a.entries[namespace+"/"+p.Name]; entry != nil {
			return entry.Spec.Hosts
		}
		return []string{p.Name}
	}
	return nil
}

// onPort restricts routes to a port; 0 is all.
func onPort(routes []httpRoute, port uint32) []httpRoute {
	if port == 0 {
		return routes
	}
	for i := range routes {
		if len(routes[i].Match) == 0 {
			routes[i].Match = []*networking.HTTPMatchRequest{{}}
		}
		routes[i].Match[0].Port = port
	}
	return routes
}

// connections are where the rules for connections lead; nil if Istio does not take them (Istio, buildTCPDestination).
func (a *attacher) connections(ref snapshot.Ref, rules []gatewayv1.Connections) (out [][]*networking.RouteDestination) {
	for i := range rules {
		var to []*networking.RouteDestination
		for j := range rules[i].BackendRefs {
			b := &rules[i].BackendRefs[j]
			if weightOf(b) == 0 {
				continue
			}
			d, _, err := a.destinationOf(b, ref)
			if err != nil {
				return nil
			}
			to = append(to, &networking.RouteDestination{Destination: d, Weight: weightOf(b)})
		}
		if len(to) == 0 { // as istiod has it where no backend has a weight
			to = append(to, &networking.RouteDestination{Destination: &networking.Destination{}})
		}
		out = append(out, to)
	}
	return out
}

// exported are the namespaces for which istiod keeps the routes: the Gateway API has no exportTo, so that the default of the mesh
// applies.
func (r *attachedRoutes) exported(mesh *snapshot.MeshPlan) callerNamespaces {
	return namespacesOf(defaultExportTo(mesh.ExportTo, snapshot.VirtualService), r.ref.Namespace)
}

// seenBy are the namespaces whose callers use the routes.
func (r *attachedRoutes) seenBy(mesh *snapshot.MeshPlan) callerNamespaces {
	to := r.exported(mesh)
	if r.ref.Namespace != r.home && len(r.http) > 0 {
		return to.only(r.ref.Namespace)
	}
	return to
}

// attachedTo are the routes for a host, the oldest first. What is attached to a Service or ServiceEntry in another namespace than that
// of the host is for another one of the name.
func (h *handWritten) attachedTo(of *snapshot.HostQuery) []attachedRoutes {
	out := slices.DeleteFunc(slices.Clone(h.attached[of.Host]), func(r attachedRoutes) bool { return r.home != of.Home || !r.of(of.Mesh) })
	slices.SortStableFunc(out, func(a, b attachedRoutes) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.ref.Namespace, b.ref.Namespace), strings.Compare(a.ref.Name, b.ref.Name))
	})
	return out
}
