package istio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// toCart is the beginning of a route of Service cart in namespace shop.
const toCart = `parentRefs: [{group: "", kind: Service, namespace: shop, name: cart}], `

// at returns an object that is some hours old.
func at[T metav1.Object](hours int, o T) T {
	o.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, 1, 24-hours, 0, 0, 0, time.UTC)))
	return o
}

// routed are the names of the objects that route requests for cart, in the order in which callers in a namespace use them.
func routed(t *testing.T, callers string, exportTo *discoveryv1.IstioExportTo, objects ...snapshot.APIObject) (names []string, list []snapshot.HandRoutes) {
	t.Helper()
	c := &snapshot.Cluster{Name: "east"}
	for _, o := range objects {
		kind, known := snapshot.KindOfObject(o)
		require.True(t, known)
		reads[kind](o)
		c.OfMeshes[kind] = append(c.OfMeshes[kind], o)
	}
	mesh := &snapshot.MeshPlan{RootNamespace: "istio-system", Namespace: "istio-system", ExportTo: exportTo}
	list = inspect(c, snapshot.Plane{}).RoutesFor(&snapshot.HostQuery{Host: "cart.shop.svc.cluster.local", Mesh: mesh, Home: "shop", Port: 80}, &snapshot.PodQuery{Mesh: mesh, Namespace: callers})
	for _, r := range list {
		names = append(names, r.Ref.Namespace+"/"+r.Ref.Name)
	}
	return names, list
}

// TestRoutesAreUsedInOrder: see Istio's SelectVirtualServices and buildSidecarVirtualHostsForVirtualService.
func TestRoutesAreUsedInOrder(t *testing.T) {
	t.Parallel()
	vs := func(hours int, namespace, name, spec string) snapshot.APIObject {
		return at(hours, written[istionetworkingv1.VirtualService](t, namespace, name, spec+"hosts: [cart.shop.svc.cluster.local], http: [{route: [{destination: {host: cart}}]}]"))
	}
	route := func(hours int, namespace, name string) snapshot.APIObject {
		return at(hours, written[gatewayv1.HTTPRoute](t, namespace, name, toCart+"rules: [{backendRefs: [{name: cart, port: 80}]}]"))
	}
	ownOnly := &discoveryv1.IstioExportTo{VirtualServices: []string{"."}}
	for name, tt := range map[string]struct {
		callers  string
		exportTo *discoveryv1.IstioExportTo
		objects  []snapshot.APIObject
		want     []string
	}{
		"the older one of two":                            {"front", nil, []snapshot.APIObject{vs(1, "a", "new", ""), vs(2, "b", "old", "")}, []string{"b/old", "a/new"}},
		"of the same age, by name and not by namespace":   {"front", nil, []snapshot.APIObject{vs(1, "a", "x-2", ""), vs(1, "b", "x", "")}, []string{"b/x", "a/x-2"}},
		"an HTTPRoute of the service is as old as it is":  {"front", nil, []snapshot.APIObject{vs(1, "a", "new", ""), route(2, "shop", "old")}, []string{"shop/old", "a/new"}},
		"one of the callers before what is older":         {"front", nil, []snapshot.APIObject{vs(2, "shop", "old", ""), route(1, "front", "mine"), route(3, "shop", "older")}, []string{"front/mine", "shop/older", "shop/old"}},
		"one of another namespace is not for the callers": {"front", nil, []snapshot.APIObject{route(1, "other", "theirs")}, nil},
		"what is private before one of the callers":       {"front", nil, []snapshot.APIObject{vs(1, "front", "own", `exportTo: ["."], `), route(2, "front", "mine")}, []string{"front/own", "front/mine"}},
		"what is exported by name after what is private":  {"front", nil, []snapshot.APIObject{vs(1, "front", "own", `exportTo: ["."], `), vs(2, "a", "given", `exportTo: [front], `)}, []string{"front/own", "a/given"}},
		"routes follow the default of the mesh":           {"front", ownOnly, []snapshot.APIObject{route(1, "front", "mine"), route(2, "shop", "theirs")}, []string{"front/mine"}},
		"two of a namespace are one":                      {"front", nil, []snapshot.APIObject{route(1, "shop", "new"), route(2, "shop", "old")}, []string{"shop/old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, _ := routed(t, tt.callers, tt.exportTo, tt.objects...)
			assert.Equal(t, tt.want, names)
		})
	}
}

// TestRoutesOfTheGatewayAPI: see Istio's convertHTTPRoute and convertGRPCRoute.
func TestRoutesOfTheGatewayAPI(t *testing.T) {
	t.Parallel()
	const backend = "backendRefs: [{name: cart, port: 80}]"
	route := func(rules string) snapshot.APIObject {
		return written[gatewayv1.HTTPRoute](t, "shop", "r", toCart+"rules: ["+rules+"]")
	}
	grpc := func(rules string) snapshot.APIObject {
		return written[gatewayv1.GRPCRoute](t, "shop", "r", toCart+"rules: ["+rules+"]")
	}
	type want struct {
		path, ends, unknown string
		timeout             time.Duration
	}
	for name, tt := range map[string]struct {
		object snapshot.APIObject
		want   []want
	}{
		"a prefix ends where an element does": {route("{matches: [{path: {value: /api/}}], " + backend + "}"), []want{{path: `/api(/.*)?`}}},
		"dots are no patterns":                {route("{matches: [{path: {type: PathPrefix, value: /v1.0}}], " + backend + "}"), []want{{path: `/v1\.0(/.*)?`}}},
		"nothing is asked":                    {route("{" + backend + "}"), []want{{}}},
		"exact before longer prefixes":        {route("{matches: [{path: {value: /a/b/c}}, {path: {type: Exact, value: /a}}], " + backend + "}"), []want{{}, {path: "/a/b/c(/.*)?"}}},
		"no backend has a weight":             {route("{backendRefs: [{name: cart, port: 80, weight: 0}]}"), []want{{ends: "answers them with status 500 itself"}}},
		"a rewrite":                           {route("{filters: [{type: URLRewrite}], " + backend + "}"), []want{{unknown: "it rewrites them"}}},
		"a redirect without backends":         {route("{filters: [{type: RequestRedirect}]}"), []want{{unknown: "it redirects them"}}},
		"a backend of another kind":           {route("{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: p}]}"), []want{{unknown: "it sends them to InferencePool p, which is no Service"}}},
		"one try where nothing is retried":    {route("{timeouts: {request: 9s, backendRequest: 2s}, " + backend + "}"), []want{{timeout: 2 * time.Second}}},
		"all tries where something is":        {route("{timeouts: {request: 9s, backendRequest: 2s}, retry: {attempts: 2}, " + backend + "}"), []want{{timeout: 9 * time.Second}}},
		"a filter that is not known":          {route("{filters: [{type: ExtensionRef}], " + backend + "}"), nil},
		"a backend without a port":            {route("{backendRefs: [{name: cart}]}"), nil},
		"a host for a Service":                {route("{backendRefs: [{name: cart.shop, port: 80}]}"), nil},
		"a method of gRPC":                    {grpc("{matches: [{method: {method: Get}}], " + backend + "}"), []want{{path: "/[^/]+/Get"}}},
		"all methods of a service":            {grpc("{matches: [{method: {service: a.B}}], " + backend + "}"), []want{{path: `/a\.B(/.*)?`}}},
		"a pattern of services":               {grpc("{matches: [{method: {type: RegularExpression, service: 'a\\..+'}}], " + backend + "}"), []want{{path: `/a\..+/.+`}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, list := routed(t, "front", nil, tt.object)
			if tt.want == nil {
				assert.Empty(t, list)
				return
			}
			require.Len(t, list, 1)
			require.Len(t, list[0].Routes, len(tt.want))
			for i, w := range tt.want {
				r := list[0].Routes[i]
				if uri := r.Match.Request.Uri; w.path != "" && assert.NotNil(t, uri) {
					assert.Equal(t, w.path, uri.Regex)
				}
				assert.Equal(t, w.ends, r.Ends)
				assert.Equal(t, w.unknown, r.ActionUnknown)
				if w.timeout != 0 && assert.NotNil(t, r.Action.Timeout) {
					assert.Equal(t, w.timeout, r.Action.Timeout.Value)
				}
			}
		})
	}
}
