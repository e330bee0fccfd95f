package istio

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	kubenetworkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// enteredAt are the ways into the mesh at pods of namespace edge with the label istio: public, behind Service edge, as lines
// "LISTENS HOST: OBJECTS".
func enteredAt(t *testing.T, spec *discoveryv1.IstioMesh, objects ...snapshot.APIObject) []string {
	t.Helper()
	c := &snapshot.Cluster{Name: "east", Services: []*corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "edge-istio"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"istio": "public"}, Ports: []corev1.ServicePort{
			{Name: "http", Port: 80}, {Name: "https", Port: 443}, {Name: "other", Port: 81},
		}},
	}}}
	for _, o := range objects {
		kind, known := snapshot.KindOfObject(o)
		require.True(t, known)
		reads[kind](o)
		c.OfMeshes[kind] = append(c.OfMeshes[kind], o)
	}
	mesh := &snapshot.MeshPlan{RootNamespace: "istio-system", Namespace: "istio-system", Mesh: &discoveryv1.Mesh{Spec: discoveryv1.MeshSpec{Istio: spec}}}
	pods := &snapshot.PodQuery{Mesh: mesh, Namespace: "edge", Pods: []map[string]string{{"istio": "public"}}}
	entries, _ := inspect(c, snapshot.Plane{}).AtGateway(pods, &snapshot.HostQuery{Host: "cart.edge.svc.cluster.local", Mesh: mesh})
	out := []string{}
	for _, e := range entries {
		for _, h := range e.Hosts {
			var of []string
			for _, r := range h.Routes {
				of = append(of, r.Action.Policies[0].Name)
			}
			out = append(out, fmt.Sprintf("%s %s: %s", e.Listens, h.Name, strings.Join(of, ",")))
		}
	}
	return out
}

// TestGatewaysAreMerged: see Istio's model.mergeGateways, buildGatewayHTTPRouteConfig and VirtualServicesForGateway.
func TestGatewaysAreMerged(t *testing.T) {
	t.Parallel()
	gw := func(hours int, namespace, name, servers string) snapshot.APIObject {
		return at(hours, written[istionetworkingv1.Gateway](t, namespace, name, "selector: {istio: public}, servers: ["+servers+"]"))
	}
	vs := func(hours int, namespace, name, spec string) snapshot.APIObject {
		return at(hours, written[istionetworkingv1.VirtualService](t, namespace, name, spec+", http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: cart}}]}]"))
	}
	const http, https = "{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}", "{port: {number: 443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: SIMPLE}}"
	for name, tt := range map[string]struct {
		objects []snapshot.APIObject
		want    []string
	}{
		"the older one first": {
			[]snapshot.APIObject{gw(1, "edge", "g", http), vs(1, "a", "new", "hosts: [x], gateways: [edge/g]"), vs(2, "b", "old", "hosts: [x.a.svc.cluster.local], gateways: [edge/g]")},
			[]string{"80 x.a.svc.cluster.local: old,new"},
		},
		"those for the namespace of the pods alone come first": {
			[]snapshot.APIObject{gw(1, "edge", "g", http), vs(1, "edge", "own", "hosts: [x.y], gateways: [g], exportTo: [.]"), vs(2, "b", "old", "hosts: [x.y], gateways: [edge/g]"), vs(3, "b", "hidden", "hosts: [x.y], gateways: [edge/g], exportTo: [.]")},
			[]string{"80 x.y: own,old"},
		},
		"two Gateways on one port": {
			[]snapshot.APIObject{gw(1, "edge", "g", http), gw(2, "other", "h", http), vs(1, "a", "one", "hosts: [x.y], gateways: [edge/g]"), vs(2, "a", "two", "hosts: [x.y], gateways: [other/h]")},
			[]string{"80 x.y: two,one"},
		},
		"the first protocol of a port": {
			[]snapshot.APIObject{gw(1, "edge", "g", http), gw(2, "edge", "h", "{port: {number: 80, name: tcp, protocol: TCP}, hosts: ['*']}"), vs(1, "a", "one", "hosts: [x.y], gateways: [edge/g]")},
			[]string{},
		},
		"a name in TLS belongs to the first": {
			[]snapshot.APIObject{gw(2, "edge", "g", https), gw(1, "edge", "h", https), vs(1, "a", "one", "hosts: [x.y], gateways: [edge/g]"), vs(1, "a", "two", "hosts: [x.y], gateways: [edge/h]")},
			[]string{"443 x.y: one"},
		},
		"names of one namespace": {
			[]snapshot.APIObject{gw(1, "edge", "g", "{port: {number: 81, name: http, protocol: HTTP}, hosts: ['a/*.y', './z.y', '*/w.y']}"), vs(1, "a", "one", "hosts: [x.y, z.y, w.y, v.x], gateways: [edge/g]")},
			[]string{"81 w.y: one", "81 x.y: one", "81 z.y: one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, enteredAt(t, nil, tt.objects...))
		})
	}
}

// TestListenersTakeRoutes: see Istio's referenceAllowed, hostnameAllowedByIsolation and ComputeGatewayListenerConflicts.
func TestListenersTakeRoutes(t *testing.T) {
	t.Parallel()
	gateway := func(listeners string) snapshot.APIObject {
		return written[gatewayv1.Gateway](t, "edge", "edge", "gatewayClassName: istio, listeners: ["+listeners+"]")
	}
	route := func(namespace, name, spec string) snapshot.APIObject {
		return written[gatewayv1.HTTPRoute](t, namespace, name, spec+", rules: [{backendRefs: [{name: cart, port: 80}]}]")
	}
	const all, to = "allowedRoutes: {namespaces: {from: All}}", "parentRefs: [{name: edge, namespace: edge}]"
	for name, tt := range map[string]struct {
		objects []snapshot.APIObject
		want    []string
	}{
		"a route of the same namespace":    {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}"), route("edge", "r", to)}, []string{"80 *: r"}},
		"one of another namespace":         {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}"), route("shop", "r", to)}, []string{}},
		"one that may":                     {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP, " + all + "}"), route("shop", "r", to)}, []string{"80 *: r"}},
		"a kind that is not allowed":       {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}"), route("edge", "r", to)}, []string{}},
		"the narrower of two names":        {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP, hostname: '*.x'}"), route("edge", "r", to+", hostnames: ['a.x', '*']")}, []string{"80 *.x: r", "80 a.x: r"}},
		"a port of no listener":            {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}"), route("edge", "r", "parentRefs: [{name: edge, port: 81}]")}, []string{}},
		"a section":                        {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP}"), route("edge", "r", "parentRefs: [{name: edge, sectionName: b}]")}, []string{"81 *: r"}},
		"a nearer listener":                {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP, hostname: b.x, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}"), route("edge", "r", to+", hostnames: [a.x, b.x]")}, []string{"80 a.x: r"}},
		"a nearer listener on another one": {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP, hostname: b.x, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}"), route("edge", "r", to+", hostnames: [b.x]")}, []string{"80 b.x: r"}},
		"a second listener of a name":      {[]snapshot.APIObject{gateway("{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: TLS, tls: {mode: Passthrough}}"), route("edge", "r", "parentRefs: [{name: edge, sectionName: a}]")}, []string{"80 *: r"}},
		"a port that no Service has":       {[]snapshot.APIObject{gateway("{name: a, port: 82, protocol: HTTP}"), route("edge", "r", to)}, []string{}},
		"HTTPS without TLS":                {[]snapshot.APIObject{gateway("{name: a, port: 443, protocol: HTTPS}"), route("edge", "r", to)}, []string{}},
		"another class":                    {[]snapshot.APIObject{written[gatewayv1.Gateway](t, "edge", "edge", "gatewayClassName: istio-waypoint, listeners: [{name: a, port: 80, protocol: HTTP}]"), route("edge", "r", to)}, []string{}},
		"a Service that is named":          {[]snapshot.APIObject{written[gatewayv1.Gateway](t, "edge", "edge", "gatewayClassName: istio, addresses: [{type: Hostname, value: edge-istio.edge.svc.cluster.local}], listeners: [{name: a, port: 80, protocol: HTTP}]"), route("edge", "r", to)}, []string{"80 *: r"}},
		"a Service of another namespace":   {[]snapshot.APIObject{written[gatewayv1.Gateway](t, "other", "edge", "gatewayClassName: istio, addresses: [{type: Hostname, value: edge-istio.edge.svc.cluster.local}], listeners: [{name: a, port: 80, protocol: HTTP}]"), route("other", "r", "parentRefs: [{name: edge}]")}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, enteredAt(t, nil, tt.objects...))
		})
	}
}

// TestIngressesAreTaken: see Istio's shouldProcessIngressWithClass.
func TestIngressesAreTaken(t *testing.T) {
	t.Parallel()
	ingress := func(spec string) *kubenetworkingv1.Ingress {
		return written[kubenetworkingv1.Ingress](t, "shop", "i", spec+"rules: [{host: x.y, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}]}}]")
	}
	class := func(controller string) snapshot.APIObject {
		return written[kubenetworkingv1.IngressClass](t, "", "c", "controller: "+controller)
	}
	annotated := func(class string) *kubenetworkingv1.Ingress {
		o := ingress("")
		o.Annotations = map[string]string{ingressClassKey: class}
		return o
	}
	for name, tt := range map[string]struct {
		settings discoveryv1.IstioIngress
		objects  []snapshot.APIObject
		taken    bool
	}{
		"no class":                       {discoveryv1.IstioIngress{}, []snapshot.APIObject{ingress("")}, false},
		"no class, and none is needed":   {discoveryv1.IstioIngress{Mode: "DEFAULT"}, []snapshot.APIObject{ingress("")}, true},
		"annotated":                      {discoveryv1.IstioIngress{}, []snapshot.APIObject{annotated("istio")}, true},
		"annotated, and none is taken":   {discoveryv1.IstioIngress{Mode: "OFF"}, []snapshot.APIObject{annotated("istio")}, false},
		"annotated for others":           {discoveryv1.IstioIngress{Mode: "DEFAULT"}, []snapshot.APIObject{annotated("nginx")}, false},
		"annotated with the own class":   {discoveryv1.IstioIngress{Class: "edge"}, []snapshot.APIObject{annotated("edge")}, true},
		"annotated with the usual class": {discoveryv1.IstioIngress{Class: "edge"}, []snapshot.APIObject{annotated("istio")}, false},
		"a class of Istio":               {discoveryv1.IstioIngress{}, []snapshot.APIObject{ingress("ingressClassName: c, "), class(ingressController)}, true},
		"a class of others":              {discoveryv1.IstioIngress{Mode: "DEFAULT"}, []snapshot.APIObject{ingress("ingressClassName: c, "), class("other")}, false},
		"a class that is not there":      {discoveryv1.IstioIngress{}, []snapshot.APIObject{ingress("ingressClassName: c, ")}, false},
		"the same, and none is needed":   {discoveryv1.IstioIngress{Mode: "DEFAULT"}, []snapshot.APIObject{ingress("ingressClassName: c, ")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := []string{}
			if tt.taken {
				want = []string{"80 x.y: i"}
			}
			settings := tt.settings
			settings.Gateway = "public"
			assert.Equal(t, want, enteredAt(t, &discoveryv1.IstioMesh{Ingress: &settings}, tt.objects...))
			settings.Gateway = ""
			assert.Empty(t, enteredAt(t, &discoveryv1.IstioMesh{Ingress: &settings}, tt.objects...), "its gateway is that of the settings")
		})
	}
}

// TestDelegatesAskForLess: see Istio's mergeHTTPMatchRequests.
func TestDelegatesAskForLess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		root, leaf *networking.HTTPMatchRequest
		want       *networking.HTTPMatchRequest
	}{
		"a longer prefix":         {&networking.HTTPMatchRequest{Uri: prefixed("/a")}, &networking.HTTPMatchRequest{Uri: prefixed("/a/b")}, &networking.HTTPMatchRequest{Uri: prefixed("/a/b")}},
		"another prefix":          {&networking.HTTPMatchRequest{Uri: prefixed("/a")}, &networking.HTTPMatchRequest{Uri: prefixed("/b")}, nil},
		"a path below":            {&networking.HTTPMatchRequest{Uri: prefixed("/a")}, &networking.HTTPMatchRequest{Uri: exact("/a/b")}, &networking.HTTPMatchRequest{Uri: exact("/a/b")}},
		"a prefix of the path":    {&networking.HTTPMatchRequest{Uri: exact("/a")}, &networking.HTTPMatchRequest{Uri: prefixed("/a")}, nil},
		"the same path":           {&networking.HTTPMatchRequest{Uri: exact("/a")}, &networking.HTTPMatchRequest{Uri: exact("/a")}, &networking.HTTPMatchRequest{Uri: exact("/a")}},
		"an expression":           {&networking.HTTPMatchRequest{Uri: regex("/a")}, &networking.HTTPMatchRequest{Uri: exact("/a")}, nil},
		"something else":          {&networking.HTTPMatchRequest{Uri: prefixed("/a"), Port: 80}, &networking.HTTPMatchRequest{Method: exact("GET")}, &networking.HTTPMatchRequest{Uri: prefixed("/a"), Port: 80, Method: exact("GET")}},
		"another port":            {&networking.HTTPMatchRequest{Port: 80}, &networking.HTTPMatchRequest{Port: 81}, nil},
		"another namespace":       {&networking.HTTPMatchRequest{SourceNamespace: "a"}, &networking.HTTPMatchRequest{}, nil},
		"a gateway of the root":   {&networking.HTTPMatchRequest{Gateways: []string{"a/b", "mesh"}}, &networking.HTTPMatchRequest{Gateways: []string{"mesh"}}, &networking.HTTPMatchRequest{Gateways: []string{"mesh"}}},
		"another gateway":         {&networking.HTTPMatchRequest{Gateways: []string{"a/b"}}, &networking.HTTPMatchRequest{Gateways: []string{"mesh"}}, nil},
		"blind to case":           {&networking.HTTPMatchRequest{IgnoreUriCase: true}, &networking.HTTPMatchRequest{}, nil},
		"a label with two values": {&networking.HTTPMatchRequest{SourceLabels: map[string]string{"a": "b"}}, &networking.HTTPMatchRequest{SourceLabels: map[string]string{"a": "c"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := mergeMatches([]*networking.HTTPMatchRequest{tt.root}, []*networking.HTTPMatchRequest{tt.leaf})
			require.Equal(t, tt.want != nil, ok)
			if ok {
				require.Len(t, got, 1)
				assert.Equal(t, tt.want.String(), got[0].String())
			}
		})
	}
}

func prefixed(value string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: value}}
}
