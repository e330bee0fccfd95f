package istio

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// guarded are the pods of an app in namespace shop, with what was written for them; namespaces of objects are shop or istio-system.
func guarded(t *testing.T, pods []map[string]string, objects ...snapshot.APIObject) []snapshot.Guard {
	t.Helper()
	c := &snapshot.Cluster{Name: "east"}
	for _, o := range objects {
		kind := snapshot.AuthorizationPolicy
		switch o.(type) {
		case *istiosecurityv1.PeerAuthentication:
			kind = snapshot.PeerAuthentication
		case *istiosecurityv1.RequestAuthentication:
			kind = snapshot.RequestAuthentication
		}
		reads[kind](o)
		c.OfMeshes[kind] = append(c.OfMeshes[kind], o)
	}
	mesh := &snapshot.MeshPlan{RootNamespace: "istio-system", TrustDomain: "east.example", TrustAliases: []string{"old.example"}}
	return inspect(c, snapshot.Plane{}).Guards(&snapshot.PodQuery{Mesh: mesh, Namespace: "shop", Pods: pods})
}

func written[T any](t *testing.T, namespace, name, spec string) *T {
	t.Helper()
	o := new(T)
	require.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, "metadata: {namespace: %q, name: %q}\nspec: {%s}\n", namespace, name, spec), o))
	return o
}

func TestGuardsDecide(t *testing.T) {
	t.Parallel()
	const (
		pass    = ""
		denied  = "denied"
		allowed = "allowed"
		closed  = "closed"
	)
	web := &snapshot.Identity{TrustDomain: "east.example", Namespace: "shop", ServiceAccount: "web"}
	get := snapshot.Call{HTTP: true, Method: "GET", Path: "/api/1", Headers: map[string]string{"x-user": "jason"}, Caller: web, PodPort: 9080}
	plain, tcp, whatever, admin := get, get, get, get
	plain.Caller = nil
	tcp.HTTP, tcp.Method, tcp.Path, tcp.Headers = false, "", "", nil
	whatever.AnyRequest, whatever.Method, whatever.Path, whatever.Headers = true, "", "", nil
	admin.Headers = map[string]string{"host": "Admin.Example"}
	for name, tt := range map[string]struct {
		spec string
		call snapshot.Call
		want string
	}{
		"nothing is denied":           {"action: DENY", get, pass},
		"all is denied":               {"action: DENY, rules: [{}]", get, denied},
		"nothing is allowed":          {"", get, closed},
		"all is allowed":              {"rules: [{}]", get, allowed},
		"audit":                       {"action: AUDIT, rules: [{}]", get, pass},
		"authorizer":                  {"action: CUSTOM, provider: {name: opa}, rules: [{}]", get, "may deny: leaves it to the external authorizer opa"},
		"authorizer for others":       {"action: CUSTOM, provider: {name: opa}, rules: [{to: [{operation: {paths: [/other]}}]}]", get, pass},
		"another selector":            {"selector: {matchLabels: {app: other}}, action: DENY, rules: [{}]", get, pass},
		"waypoint":                    {"targetRefs: [{kind: Service, name: cart}], action: DENY, rules: [{}]", get, pass},
		"principal":                   {"rules: [{from: [{source: {principals: [east.example/ns/shop/sa/web]}}]}]", get, allowed},
		"principal of an alias":       {"rules: [{from: [{source: {principals: [old.example/ns/shop/sa/web]}}]}]", get, allowed},
		"principal of the default":    {"rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/web]}}]}]", get, allowed},
		"principal of another domain": {"rules: [{from: [{source: {principals: [west.example/ns/shop/sa/web]}}]}]", get, closed},
		"principal by its end":        {"rules: [{from: [{source: {principals: ['*/sa/web']}}]}]", get, allowed},
		"any principal":               {"rules: [{from: [{source: {principals: ['*']}}]}]", get, allowed},
		"any principal, and plain":    {"rules: [{from: [{source: {principals: ['*']}}]}]", plain, closed},
		"no such principal, plain":    {"action: DENY, rules: [{from: [{source: {notPrincipals: ['*']}}]}]", plain, denied},
		"namespace":                   {"rules: [{from: [{source: {namespaces: ['sh*']}}]}]", get, allowed},
		"not the namespace":           {"action: DENY, rules: [{from: [{source: {notNamespaces: [shop]}}]}]", get, pass},
		"account of the namespace":    {"rules: [{from: [{source: {serviceAccounts: [web]}}]}]", get, allowed},
		"account of another one":      {"rules: [{from: [{source: {serviceAccounts: [desk/web]}}]}]", get, closed},
		"trust domain":                {"rules: [{from: [{source: {trustDomains: [old.example]}}]}]", get, allowed},
		"one of two sources":          {"rules: [{from: [{source: {namespaces: [desk]}}, {source: {namespaces: [shop]}}]}]", get, allowed},
		"both of a source":            {"rules: [{from: [{source: {namespaces: [shop], principals: ['*/sa/desk']}}]}]", get, closed},
		"address":                     {"rules: [{from: [{source: {ipBlocks: [10.0.0.0/8]}}]}]", get, "may allow: allows by the callers' addresses"},
		"address of others":           {"rules: [{from: [{source: {ipBlocks: [10.0.0.0/8], namespaces: [desk]}}]}]", get, closed},
		"not an address":              {"action: DENY, rules: [{from: [{source: {notIpBlocks: [10.0.0.0/8]}}]}]", get, "may deny: denies by the callers' addresses"},
		"token":                       {"rules: [{from: [{source: {requestPrincipals: ['*']}}]}]", get, closed},
		"no token":                    {"action: DENY, rules: [{from: [{source: {notRequestPrincipals: ['*']}}]}]", get, denied},
		"method":                      {"action: DENY, rules: [{to: [{operation: {methods: [GET]}}]}]", get, denied},
		"not the method":              {"action: DENY, rules: [{to: [{operation: {notMethods: [GET]}}]}]", get, pass},
		"path":                        {"rules: [{to: [{operation: {paths: ['/api/*'], methods: [GET]}}]}]", get, allowed},
		"path template":               {"rules: [{to: [{operation: {paths: ['/{*}/1']}}]}]", get, allowed},
		"another path":                {"rules: [{to: [{operation: {paths: [/api], methods: [GET]}}]}]", get, closed},
		"port":                        {"rules: [{to: [{operation: {ports: ['9080']}}]}]", get, allowed},
		"not the port":                {"rules: [{to: [{operation: {notPorts: ['9080']}}]}]", get, closed},
		"host":                        {"rules: [{to: [{operation: {hosts: ['*.example']}}]}]", admin, allowed},
		"host that is not known":      {"action: DENY, rules: [{to: [{operation: {hosts: ['*.example']}}]}]", get, "may deny: denies by the host that callers name"},
		"header":                      {"rules: [{when: [{key: 'request.headers[X-User]', values: [jason]}]}]", get, allowed},
		"header that is not there":    {"action: DENY, rules: [{when: [{key: 'request.headers[x-other]', notValues: [a]}]}]", get, denied},
		"claim":                       {"rules: [{when: [{key: 'request.auth.claims[group]', values: [a]}]}]", get, closed},
		"SNI":                         {"rules: [{when: [{key: connection.sni, values: [a]}]}]", get, "may allow: allows by connection.sni"},
		"port by condition":           {"rules: [{when: [{key: destination.port, values: ['9080']}]}]", get, allowed},
		"a rule for requests, TCP":    {"rules: [{to: [{operation: {methods: [GET], ports: ['9080']}}]}]", tcp, closed},
		"denied requests, TCP":        {"action: DENY, rules: [{to: [{operation: {methods: [GET], ports: ['9080']}}]}]", tcp, denied},
		"denied requests elsewhere":   {"action: DENY, rules: [{to: [{operation: {methods: [GET], ports: ['9090']}}]}]", tcp, pass},
		"whatever is asked, denied":   {"action: DENY, rules: [{to: [{operation: {methods: [GET]}}]}]", whatever, "may deny: denies by what is asked for"},
		"whatever is asked, a caller": {"action: DENY, rules: [{from: [{source: {namespaces: [shop]}}]}]", whatever, denied},
		"whatever is asked, another":  {"action: DENY, rules: [{from: [{source: {namespaces: [desk]}}], to: [{operation: {methods: [GET]}}]}]", whatever, pass},
	} {
		got := ""
		for _, g := range guarded(t, []map[string]string{{"app": "cart"}}, written[istiosecurityv1.AuthorizationPolicy](t, "shop", "written", tt.spec)) {
			switch r := g.Decide(&tt.call); {
			case r.Denied != snapshot.Ref{}:
				got = denied
			case r.Allowed != snapshot.Ref{}:
				got = allowed
			case len(r.MayDeny) > 0:
				got = "may deny: " + r.MayDeny[0].What
			case len(r.MayAllow) > 0:
				got = "may allow: " + r.MayAllow[0].What
			case r.Closed != snapshot.Ref{}:
				got = closed
			}
		}
		assert.Equal(t, tt.want, got, name)
	}
	dry := written[istiosecurityv1.AuthorizationPolicy](t, "shop", "written", "action: DENY, rules: [{}]")
	dry.Annotations = map[string]string{dryRun: "true"}
	assert.Empty(t, guarded(t, []map[string]string{{"app": "cart"}}, dry), "it is only tried")
}

// TestGuardsGroupPods: what selects some of the pods decides about these.
func TestGuardsGroupPods(t *testing.T) {
	t.Parallel()
	pods := []map[string]string{{"app": "cart", "pod": "0"}, {"app": "cart", "pod": "1"}, {"app": "cart", "pod": "2"}}
	guards := guarded(t, pods,
		written[istiosecurityv1.AuthorizationPolicy](t, "shop", "leader", "selector: {matchLabels: {pod: '1'}}"),
		written[istiosecurityv1.AuthorizationPolicy](t, "istio-system", "all", "action: DENY"),
		written[istiosecurityv1.AuthorizationPolicy](t, "elsewhere", "others", "action: DENY, rules: [{}]"),
		written[istiosecurityv1.AuthorizationPolicy](t, "shop", "of-gateway", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}], action: DENY, rules: [{}]"),
	)
	require.Len(t, guards, 2)
	assert.Equal(t, 2, guards[0].Pods())
	assert.Equal(t, "[AuthorizationPolicy east/istio-system/all]", fmt.Sprint(guards[0].Objects()))
	assert.Equal(t, 1, guards[1].Pods())
	assert.Equal(t, "[AuthorizationPolicy east/istio-system/all AuthorizationPolicy east/shop/leader]", fmt.Sprint(guards[1].Objects()))
	gateway := guarded(t, []map[string]string{{gatewayName: "a"}},
		written[istiosecurityv1.AuthorizationPolicy](t, "shop", "of-gateway", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}], action: DENY, rules: [{}]"))
	require.Len(t, gateway, 1)
	for _, ref := range []string{"kind: Gateway, name: a", "group: gateway.networking.k8s.io, kind: Gateway, name: a, namespace: elsewhere", "group: gateway.networking.k8s.io, kind: GatewayClass, name: istio"} {
		assert.Empty(t, guarded(t, []map[string]string{{gatewayName: "a"}},
			written[istiosecurityv1.AuthorizationPolicy](t, "shop", "of-others", "targetRefs: [{"+ref+"}], action: DENY, rules: [{}]")), "that is no gateway of its namespace: "+ref)
	}
}

func TestPeerAuthentications(t *testing.T) {
	t.Parallel()
	peer := func(namespace, name, spec string) *istiosecurityv1.PeerAuthentication {
		return written[istiosecurityv1.PeerAuthentication](t, namespace, name, spec)
	}
	newer := func(o *istiosecurityv1.PeerAuthentication) *istiosecurityv1.PeerAuthentication {
		o.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
		return o
	}
	const mine = "selector: {matchLabels: {app: cart}}, "
	for name, tt := range map[string]struct {
		objects []snapshot.APIObject
		want    snapshot.TLS
		by      string
	}{
		"mesh":                   {[]snapshot.APIObject{peer("istio-system", "m", "mtls: {mode: STRICT}")}, snapshot.TLSMutual, "m"},
		"namespace before mesh":  {[]snapshot.APIObject{peer("istio-system", "m", "mtls: {mode: STRICT}"), peer("shop", "n", "mtls: {mode: DISABLE}")}, snapshot.TLSNone, "n"},
		"pods before namespace":  {[]snapshot.APIObject{peer("shop", "n", "mtls: {mode: STRICT}"), peer("shop", "w", mine+"mtls: {mode: PERMISSIVE}")}, snapshot.TLSAny, "w"},
		"unset is inherited":     {[]snapshot.APIObject{peer("istio-system", "m", "mtls: {mode: STRICT}"), peer("shop", "w", mine+"portLevelMtls: {80: {mode: DISABLE}}")}, snapshot.TLSMutual, "m"},
		"port":                   {[]snapshot.APIObject{peer("shop", "w", mine+"mtls: {mode: STRICT}, portLevelMtls: {9080: {mode: DISABLE}}")}, snapshot.TLSNone, "w"},
		"port that inherits":     {[]snapshot.APIObject{peer("shop", "w", mine+"mtls: {mode: STRICT}, portLevelMtls: {9080: {}}")}, snapshot.TLSMutual, "w"},
		"others":                 {[]snapshot.APIObject{peer("shop", "w", "selector: {matchLabels: {app: other}}, mtls: {mode: STRICT}"), peer("desk", "n", "mtls: {mode: STRICT}")}, snapshot.TLSAny, ""},
		"the older of two":       {[]snapshot.APIObject{newer(peer("shop", "a", "mtls: {mode: STRICT}")), peer("shop", "b", "mtls: {mode: DISABLE}")}, snapshot.TLSNone, "b"},
		"root with a selector":   {[]snapshot.APIObject{peer("istio-system", "m", mine+"mtls: {mode: STRICT}")}, snapshot.TLSAny, ""},
		"namespace with no port": {[]snapshot.APIObject{peer("shop", "n", "mtls: {mode: STRICT}, portLevelMtls: {9080: {mode: DISABLE}}")}, snapshot.TLSMutual, "n"},
	} {
		var tls snapshot.TLS
		var by snapshot.Ref
		for _, g := range guarded(t, []map[string]string{{"app": "cart"}}, tt.objects...) {
			tls, by = g.TLS(9080)
		}
		assert.Equal(t, tt.want, tls, name)
		assert.Equal(t, tt.by, by.Name, name)
	}
}
