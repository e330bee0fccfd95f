package agent

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatTheHubMayAskFor: the agent keeps the line, whoever the hub is.
func TestWhatTheHubMayAskFor(t *testing.T) {
	t.Parallel()
	s := rules{cluster: "west", plane: snapshot.Plane{Namespace: "gloo-mesh", ID: "p1"}}
	const (
		services = "/apis/networking.istio.io/v1/namespaces/shop/serviceentries"
		cart     = services + "/cart"
		apply    = "application/apply-patch+yaml"
		ours     = `{}`
	)
	labels := `"` + snapshot.NetworkingOwnerLabel + `":"gloo-mesh","` + snapshot.PlaneLabel + `":"p1","` + snapshot.ClusterLabel + `":"west"`
	document := func(namespace, name, labels string) string {
		return `{"metadata":{"namespace":"` + namespace + `","name":"` + name + `","labels":{` + labels + `}}}`
	}
	deletion := `{"preconditions":{"resourceVersion":"7"}}`
	for name, c := range map[string]struct {
		method, path, content, body string
		refused                     string
	}{
		"ready":                      {method: "GET", path: "/readyz"},
		"ready with a query":         {method: "GET", path: "/readyz?verbose"},
		"read one":                   {method: "GET", path: services + "?fieldSelector=metadata.name%3Dcart"},
		"write":                      {method: "PATCH", path: cart + "?fieldManager=meshctl&force=true", content: apply, body: document("shop", "cart", labels)},
		"write a status":             {method: "PATCH", path: cart + "/status", content: apply, body: document("shop", "cart", "")},
		"delete":                     {method: "DELETE", path: cart, body: deletion},
		"another name":               {method: "PATCH", path: cart, content: apply, body: document("shop", "other", labels), refused: "the document is that of shop/other"},
		"another namespace":          {method: "PATCH", path: cart, content: apply, body: document("kube-system", "cart", labels), refused: "kube-system/cart"},
		"not marked":                 {method: "PATCH", path: cart, content: apply, body: document("shop", "cart", ""), refused: "is not marked"},
		"of another cluster":         {method: "PATCH", path: cart, content: apply, body: document("shop", "cart", `"`+snapshot.NetworkingOwnerLabel+`":"gloo-mesh","`+snapshot.ClusterLabel+`":"east"`), refused: "is not marked"},
		"of another plane":           {method: "PATCH", path: cart, content: apply, body: document("shop", "cart", `"`+snapshot.NetworkingOwnerLabel+`":"gloo-mesh","`+snapshot.PlaneLabel+`":"p2","`+snapshot.ClusterLabel+`":"west"`), refused: "another management plane"},
		"a merge patch":              {method: "PATCH", path: cart, content: "application/merge-patch+json", body: ours, refused: "only applies"},
		"no document":                {method: "PATCH", path: cart, content: apply, body: "x", refused: "not JSON"},
		"create":                     {method: "POST", path: services, body: ours, refused: "none of its verbs"},
		"replace":                    {method: "PUT", path: cart, body: ours, refused: "none of its verbs"},
		"delete any version":         {method: "DELETE", path: cart, body: `{}`, refused: "of which version"},
		"delete all":                 {method: "DELETE", path: services, body: deletion, refused: "only single objects"},
		"secrets":                    {method: "GET", path: "/api/v1/namespaces/gloo-mesh/secrets", refused: "is the path of nothing"},
		"pods":                       {method: "GET", path: "/api/v1/pods", refused: "is the path of nothing"},
		"pods by a detour":           {method: "GET", path: "/apis/networking.istio.io/v1/../../../api/v1/pods", refused: "is the path of nothing"},
		"secrets, escaped":           {method: "GET", path: "/apis/networking.istio.io/v1/%2e%2e/%2e%2e/api/v1/secrets", refused: "is the path of nothing"},
		"roles":                      {method: "PATCH", path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/x", content: apply, body: ours, refused: "is the path of nothing"},
		"a namespace called as kind": {method: "GET", path: "/apis/networking.istio.io/v1/namespaces/serviceentries", refused: "is the path of nothing"},
		"another server":             {method: "GET", path: "https://example.com/readyz", refused: "is no path"},
		"another server, shorter":    {method: "GET", path: "//example.com/readyz", refused: "is no path"},
		"a subresource":              {method: "PATCH", path: cart + "/scale", content: apply, body: document("shop", "cart", labels), refused: "subresource scale"},
		"metrics":                    {method: "GET", path: "/metrics", refused: "is the path of nothing"},
		"no path":                    {method: "GET", path: "", refused: "is no path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := s.allow(&relayv1.Request{Method: c.method, Path: c.path, ContentType: c.content, Body: []byte(c.body)})
			if c.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.refused)
			answer := refusal(err)
			assert.EqualValues(t, 403, answer.GetStatus())
			assert.Contains(t, string(answer.GetBody()), "the agent does not pass this on")
		})
	}
}

// FuzzAllow: whatever path is allowed is that of a kind that the management plane writes, or of the server's health.
func FuzzAllow(f *testing.F) {
	for _, path := range []string{"/readyz", "/apis/networking.istio.io/v1/serviceentries?x", "/apis/networking.istio.io/v1/namespaces/a/gateways/b", "/api/v1/secrets", "//x/../readyz"} {
		f.Add("GET", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		r := &relayv1.Request{Method: method, Path: path}
		if (rules{cluster: "west"}).allow(r) != nil {
			return
		}
		target := requested(t, path)
		if target != "/readyz" && target != "/version" {
			kind, _, _, _, ok := objectAt(target)
			if !ok || kind.Info().Access&snapshot.Write == 0 {
				t.Errorf("%s %q is allowed", method, path)
			}
		}
	})
}

// requested is the path that an HTTP client would ask for.
func requested(t *testing.T, path string) string {
	t.Helper()
	base, err := url.Parse("https://server")
	require.NoError(t, err)
	target, err := base.Parse(path)
	require.NoError(t, err)
	if target.Host != "server" {
		t.Errorf("%q leads to %s", path, target.Host)
	}
	return target.EscapedPath()
}

// FuzzUnpack: what is stored may be damaged in any way.
func FuzzUnpack(f *testing.F) {
	packed, err := pack([][]byte{[]byte(`{"kind":"a"}`), []byte(`{}`)})
	require.NoError(f, err)
	f.Add(packed)
	f.Fuzz(func(t *testing.T, raw []byte) {
		documents, err := unpack(raw)
		if err != nil {
			return
		}
		again, err := pack(documents)
		require.NoError(t, err)
		back, err := unpack(again)
		require.NoError(t, err)
		assert.Equal(t, documents, back)
	})
}
