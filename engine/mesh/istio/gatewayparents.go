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

// boundRoutes is a VirtualService for gateways as istiod has it: one that users wrote, or what it makes of routes of the Gateway API or
// of Ingresses.
type boundRoutes struct {
	namespace, name string
	created         time.Time
	ref             snapshot.Ref
	exportTo        []string
	hosts           []string
	// gateways are NAMESPACE/NAME.
	gateways []string
	// attached: it is of the Gateway API.
	attached bool
	// matchOf reads the matches of http.
	matchOf func(*networking.HTTPMatchRequest) (snapshot.Match, string)
	http    []httpRoute
	tcp     []*networking.TCPRoute
	tls     []*networking.TLSRoute
}

// boundTo are the VirtualServices for gateways of a mesh, the oldest first (Istio, sortMergedVirtualServicesByCreationTime).
func (h *ways) boundTo(mesh *snapshot.MeshPlan) (out []*boundRoutes) {
	for _, vs := range h.bound {
		if !h.reads(mesh, vs) {
			continue
		}
		ref := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: h.from.Name, Namespace: vs.Namespace, Name: vs.Name}
		one := &boundRoutes{
			namespace: vs.Namespace, name: vs.Name, created: vs.CreationTimestamp.Time, ref: ref, exportTo: vs.Spec.ExportTo,
			matchOf: matchOf, http: h.httpOf(mesh, vs), tcp: vs.Spec.Tcp, tls: vs.Spec.Tls,
		}
		for _, host := range vs.Spec.Hosts {
			if host = strings.ToLower(host); !strings.HasPrefix(host, "*") {
				host = h.fullName(host, vs.Namespace)
			}
			one.hosts = append(one.hosts, host)
		}
		for _, name := range vs.Spec.Gateways {
			if name != meshGateway {
				one.gateways = append(one.gateways, boundName(name, vs.Namespace))
			}
		}
		out = append(out, one)
	}
	out = append(append(out, h.attachedToListeners(mesh)...), h.ingressRoutes(mesh)...)
	slices.SortStableFunc(out, func(a, b *boundRoutes) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.name, b.name), strings.Compare(a.namespace, b.namespace))
	})
	return out
}

// attachment is a route of the Gateway API that is attached to a listener.
type attachment struct {
	metav1.Object
	ref       snapshot.Ref
	hostnames []string
	parents   []gatewayv1.ParentReference
	http      []httpRoute
	tcp       []*networking.TCPRoute
	tls       []*networking.TLSRoute
}

// attachedToListeners are what istiod makes of the routes that are attached to listeners. Those for requests at one listener by one name
// are merged, the oldest first, and tried by how much they ask (Istio, mergeHTTPRoutes).
func (h *ways) attachedToListeners(mesh *snapshot.MeshPlan) (out []*boundRoutes) {
	listeners := h.listeners(mesh)
	if len(listeners) == 0 {
		return nil
	}
	merged := map[string]*boundRoutes{}
	for _, a := range h.attachments(mesh) {
		count := 0
		for _, l := range a.listenersOf(listeners) {
			for _, host := range a.hostsAt(l, listeners) {
				if len(a.http) == 0 {
					out = append(out, a.connectionsAt(l, host, count)...)
					count++
					continue
				}
				key := l.fullName() + "/" + host
				one := merged[key]
				if one == nil {
					one = a.boundAt(l, host)
					one.name, one.matchOf = strings.ReplaceAll(key, "/", "~"), attachedMatch
					merged[key], out = one, append(out, one)
				}
				one.http = append(one.http, a.http...)
			}
		}
	}
	for _, one := range merged {
		sortRoutes(one.http)
	}
	return out
}

// boundAt is empty but for what all routes have.
func (a *attachment) boundAt(l *listener, host string) *boundRoutes {
	return &boundRoutes{
		namespace: a.ref.Namespace, created: a.GetCreationTimestamp().Time, ref: a.ref,
		hosts: []string{host}, gateways: []string{l.fullName()}, attached: true,
	}
}

// connectionsAt are routes for connections. Names that a listener has not are none of it (Istio, constrainTLSRoutesToListenerHost).
func (a *attachment) connectionsAt(l *listener, host string, count int) []*boundRoutes {
	one := a.boundAt(l, host)
	kind := "~tcp~"
	if a.ref.Kind == snapshot.TLSRoute {
		kind = "~tls~"
	}
	one.name, one.tcp = a.ref.Name+kind+strconv.Itoa(count)+"~"+internalGateway, a.tcp
	for _, r := range a.tls {
		names := r.Match[0].SniHosts
		if l.host() != "" {
			names = intersection(names, []string{l.host()})
		}
		if len(names) > 0 {
			one.tls = append(one.tls, &networking.TLSRoute{Match: []*networking.TLSMatchAttributes{{SniHosts: names}}, Route: r.Route})
		}
	}
	if len(one.tcp)+len(one.tls) == 0 {
		return nil
	}
	return []*boundRoutes{one}
}

// hostsAt are the hosts by which a route is entered at a listener. A name that another listener of the same port is nearer to is none
// of this one (Istio, hostnameAllowedByIsolation).
func (a *attachment) hostsAt(l *listener, listeners []*listener) (out []string) {
	hosts := a.hostnames
	if len(hosts) == 0 || a.ref.Kind == snapshot.GatewayTCPRoute {
		hosts = []string{allNamespaces}
	}
	if a.ref.Kind != snapshot.HTTPRoute && a.ref.Kind != snapshot.GRPCRoute {
		if l.host() != "" && a.ref.Kind == snapshot.TLSRoute {
			return intersection(hosts, []string{l.host()})
		}
		return hosts
	}
	for _, host := range hosts {
		if !l.isElsewhere(host, listeners) {
			out = append(out, host)
		}
	}
	return out
}

// isElsewhere reports whether requests by a name are for another listener.
func (l *listener) isElsewhere(host string, listeners []*listener) bool {
	own := l.host()
	if own != "" && !strings.HasPrefix(own, "*") {
		return false
	}
	if own != "" && !coversEither(host, own) {
		return true
	}
	return slices.ContainsFunc(listeners, func(other *listener) bool {
		name := other.host()
		return other.of == l.of && other.Port == l.Port && other.Protocol == l.Protocol && name != own && len(own) <= len(name) && isWithin(host, name)
	})
}

// isWithin reports whether a host is one that a name, or a pattern of them, includes (Istio, host.Name.SubsetOf).
func isWithin(host, name string) bool {
	if strings.HasPrefix(host, "*") && (!strings.HasPrefix(name, "*") || len(host) < len(name)) {
		return false
	}
	return covers(name, host)
}

// coversEither reports whether one of two names includes the other (Istio, host.Name.Matches).
func coversEither(a, b string) bool { return covers(a, b) || covers(b, a) }

// intersection are the names that two lists share: of two of which one includes the other, the narrower one (Istio,
// host.Names.Intersection).
func intersection(a, b []string) (out []string) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case covers(y, x):
				out = append(out, x)
			case covers(x, y):
				out = append(out, y)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// listenersOf are the listeners that take a route, by name (Istio, referenceAllowed and filteredReferences).
func (a *attachment) listenersOf(listeners []*listener) (out []*listener) {
	for i := range a.parents {
		p := &a.parents[i]
		for _, l := range listeners {
			if a.isTaken(p, l) {
				out = append(out, l)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y *listener) int { return strings.Compare(x.fullName(), y.fullName()) })
	return slices.Compact(out)
}

func (a *attachment) isTaken(p *gatewayv1.ParentReference, l *listener) bool {
	kind := gatewayKind
	if l.of.Kind == snapshot.ListenerSet {
		kind = "ListenerSet"
	}
	switch {
	case !isOf(p, kind) || p.Name != l.of.Name || valueOr(p.Namespace, a.ref.Namespace) != l.of.Namespace:
		return false
	case p.Port != nil && *p.Port != 0 && *p.Port != l.Port, valueOr(p.SectionName, l.Name) != l.Name && valueOr(p.SectionName, "") != "":
		return false
	case !slices.Contains(l.kinds, a.ref.Kind.Info().Kind):
		return false
	}
	hosts := a.hostnames
	if len(hosts) == 0 || a.ref.Kind == snapshot.GatewayTCPRoute {
		hosts = []string{allNamespaces}
	}
	return slices.ContainsFunc(l.servers[0].Hosts, func(text string) bool {
		namespace, name, _ := strings.Cut(text, "/")
		return (namespace == allNamespaces || namespace == a.ref.Namespace) && slices.ContainsFunc(hosts, func(host string) bool { return coversEither(name, host) })
	})
}

// attachments are the routes of the Gateway API of a cluster that istiod takes, the oldest first.
func (h *ways) attachments(mesh *snapshot.MeshPlan) (out []*attachment) {
	a := &attacher{cluster: h.from.Name, domain: h.from.DomainOrDefault(), entries: map[string]*istionetworkingv1.ServiceEntry{}, atGateways: true, grants: h.from.OfMeshes[snapshot.ReferenceGrant]}
	add := func(o metav1.Object, kind snapshot.Kind, hostnames []string, parents []gatewayv1.ParentReference) *attachment {
		one := &attachment{Object: o, ref: a.refOf(kind, o), parents: parents}
		for _, host := range hostnames {
			one.hostnames = append(one.hostnames, strings.ToLower(host))
		}
		if h.reads(mesh, o) {
			out = append(out, one)
		}
		return one
	}
	for o := range snapshot.Each[*gatewayv1.HTTPRoute](h.from.OfMeshes[snapshot.HTTPRoute]) {
		one := add(o, snapshot.HTTPRoute, o.Spec.Hostnames, o.Spec.ParentRefs)
		one.http = a.httpRoutesOf(o, one.ref)
	}
	for o := range snapshot.Each[*gatewayv1.GRPCRoute](h.from.OfMeshes[snapshot.GRPCRoute]) {
		one := add(o, snapshot.GRPCRoute, o.Spec.Hostnames, o.Spec.ParentRefs)
		one.http = a.grpcRoutesOf(o, one.ref)
	}
	for o := range snapshot.Each[*gatewayv1.TCPRoute](h.from.OfMeshes[snapshot.GatewayTCPRoute]) {
		one := add(o, snapshot.GatewayTCPRoute, nil, o.Spec.ParentRefs)
		for _, r := range a.connections(one.ref, o.Spec.Rules) {
			one.tcp = append(one.tcp, &networking.TCPRoute{Route: r})
		}
	}
	for o := range snapshot.Each[*gatewayv1.TLSRoute](h.from.OfMeshes[snapshot.TLSRoute]) {
		one := add(o, snapshot.TLSRoute, o.Spec.Hostnames, o.Spec.ParentRefs)
		names := one.hostnames
		if len(names) == 0 {
			names = []string{allNamespaces}
		}
		for _, r := range a.connections(one.ref, o.Spec.Rules) {
			one.tls = append(one.tls, &networking.TLSRoute{Match: []*networking.TLSMatchAttributes{{SniHosts: names}}, Route: r})
		}
	}
	out = slices.DeleteFunc(out, func(a *attachment) bool { return len(a.http)+len(a.tcp)+len(a.tls) == 0 })
	slices.SortStableFunc(out, func(a, b *attachment) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.ref.Namespace, b.ref.Namespace), strings.Compare(a.ref.Name, b.ref.Name))
	})
	return out
}

// grants reports whether a ReferenceGrant lets routes of a kind in a namespace send to an object of another one (Istio, BackendAllowed).
func granted(grants []snapshot.APIObject, from snapshot.Ref, group, kind, namespace, name string) bool {
	for o := range snapshot.Each[*gatewayv1.ReferenceGrant](grants) {
		if o.Namespace != namespace {
			continue
		}
		isFrom := slices.ContainsFunc(o.Spec.From, func(f gatewayv1.GrantFrom) bool {
			return f.Group == gatewayv1.GroupVersion.Group && f.Kind == from.Kind.Info().Kind && f.Namespace == from.Namespace
		})
		if isFrom && slices.ContainsFunc(o.Spec.To, func(t gatewayv1.GrantTo) bool {
			return t.Group == group && t.Kind == kind && (t.Name == nil || *t.Name == name)
		}) {
			return true
		}
	}
	return false
}
