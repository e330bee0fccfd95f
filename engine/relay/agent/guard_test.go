package agent

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
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
		requests = "/apis/certificates.mesh.gloo.solo.io/v1/namespaces/gloo-mesh/certificaterequests"
		policies = "/apis/networking.mesh.gloo.solo.io/v1/namespaces/shop/trafficpolicies"
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
		"answer a request":           {method: "PATCH", path: requests + "/istiod/status?fieldManager=meshctl&force=true", content: apply, body: document("gloo-mesh", "istiod", "")},
		"write a request":            {method: "PATCH", path: requests + "/istiod", content: apply, body: document("gloo-mesh", "istiod", labels), refused: "the hub does not write"},
		"read requests":              {method: "GET", path: requests, refused: "none of the verbs"},
		"delete a request":           {method: "DELETE", path: requests + "/istiod", body: deletion, refused: "none of the verbs"},
		"answer for another request": {method: "PATCH", path: requests + "/istiod/status", content: apply, body: document("gloo-mesh", "other", ""), refused: "the document is that of gloo-mesh/other"},
		"answer a policy":            {method: "PATCH", path: policies + "/mine/status", content: apply, body: document("shop", "mine", "")},
		"write a policy":             {method: "PATCH", path: policies + "/mine", content: apply, body: document("shop", "mine", labels), refused: "the hub does not write"},
		"delete a policy":            {method: "DELETE", path: policies + "/mine", body: deletion, refused: "none of the verbs"},
		"answer a VirtualMesh":       {method: "PATCH", path: "/apis/networking.mesh.gloo.solo.io/v1/namespaces/shop/virtualmeshes/mine/status", content: apply, body: document("shop", "mine", ""), refused: "is the path of nothing"},
		"write a status":             {method: "PATCH", path: cart + "/status", content: apply, body: document("shop", "cart", ""), refused: "the hub does not write"},
		"delete":                     {method: "DELETE", path: cart, body: deletion},
		"another name":               {method: "PATCH", path: cart, content: apply, body: document("shop", "other", labels), refused: "the document is that of shop/other"},
		"another namespace":          {method: "PATCH", path: cart, content: apply, body: document("kube-system", "cart", labels), refused: "kube-system/cart"},
		"not marked":                 {method: "PATCH", path: cart, content: apply, body: document("shop", "cart", ""), refused: "is not marked"},
		"of another cluster":         {method: "PATCH", path: cart, content: apply, body: document("shop", "cart", `"`+snapshot.NetworkingOwnerLabel+`":"gloo-mesh","`+snapshot.ClusterLabel+`":"east"`), refused: "is not marked"},
		"of another plane":           {method: "PATCH", path: cart, content: apply, body: document("shop", "cart", `"`+snapshot.NetworkingOwnerLabel+`":"gloo-mesh","`+snapshot.PlaneLabel+`":"p2","`+snapshot.ClusterLabel+`":"west"`), refused: "another management plane"},
		"a merge patch":              {method: "PATCH", path: cart, content: "application/merge-patch+json", body: ours, refused: "only applies"},
		"no document":                {method: "PATCH", path: cart, content: apply, body: "x", refused: "not JSON"},
		"create":                     {method: "POST", path: services, body: ours, refused: "none of the verbs"},
		"replace":                    {method: "PUT", path: cart, body: ours, refused: "none of the verbs"},
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
		"a subresource":              {method: "PATCH", path: cart + "/scale", content: apply, body: document("shop", "cart", labels), refused: "the hub does not write"},
		"metrics":                    {method: "GET", path: "/metrics", refused: "is the path of nothing"},
		"no path":                    {method: "GET", path: "", refused: "is no path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := s.allow(&relayv1.Request{Method: c.method, Path: c.path, ContentType: c.content, Body: []byte(c.body)})
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
		if _, _, err := (rules{cluster: "west"}).allow(r); err != nil {
			return
		}
		target := requested(t, path)
		if target != "/readyz" && target != "/version" {
			of, _, ok := objectAt(target)
			if !ok || of.Kind.Info().Access&snapshot.Write == 0 {
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

// guarded is a guard of a cluster in which some ServiceEntries exist.
func guarded(t *testing.T, objects map[string]mirror.Owner) *guard {
	t.Helper()
	link := &mirror.Link{}
	g := &guard{rules: rules{cluster: "west", plane: snapshot.Plane{Namespace: "gloo-mesh", ID: "p1"}}, link: link}
	config := &rest.Config{Host: "https://west.example"}
	client, err := kube.NewClient(config, kube.ClientOptions{Serializer: serializer.NewCodecFactory(scheme.New())})
	require.NoError(t, err)
	conn := link.NewConnection(config, client, "west", g.plane)
	for name, owner := range objects {
		conn.Follow(mirror.ID{Kind: snapshot.ServiceEntry, Namespace: "shop", Name: name}, mirror.Object{Version: 7, Owner: owner})
	}
	link.Use(conn)
	return g
}

func deletionOf(name string, explained bool) *relayv1.Request {
	return &relayv1.Request{
		Method: http.MethodDelete, Path: "/apis/networking.istio.io/v1/namespaces/shop/serviceentries/" + name,
		Body: []byte(`{"preconditions":{"resourceVersion":"7"}}`), Explained: explained,
	}
}

func applyOf(name string) *relayv1.Request {
	return &relayv1.Request{
		Method: http.MethodPatch, Path: "/apis/networking.istio.io/v1/namespaces/shop/serviceentries/" + name, ContentType: "application/apply-patch+yaml",
		Body: fmt.Appendf(nil, `{"metadata":{"namespace":"shop","name":%q,"labels":{%q:"gloo-mesh",%q:"p1",%q:"west"}}}`,
			name, snapshot.NetworkingOwnerLabel, snapshot.PlaneLabel, snapshot.ClusterLabel),
	}
}

// TestWhatIsSomebodyElsesIsNotTouched: a hub marks what it writes, and that makes nothing its own that exists.
func TestWhatIsSomebodyElsesIsNotTouched(t *testing.T) {
	t.Parallel()
	g := guarded(t, map[string]mirror.Owner{"theirs": mirror.Foreign, "ours": mirror.Marked, "unmarked": mirror.Unmarked})
	now := time.Unix(0, 0)
	for name, refused := range map[string]bool{"theirs": true, "ours": false, "unmarked": false, "unknown": false} {
		for _, r := range []*relayv1.Request{applyOf(name), deletionOf(name, true)} {
			err := g.allow(r, now)
			if refused {
				require.ErrorContains(t, err, "ServiceEntry west/shop/theirs is not marked", r.GetMethod())
			} else {
				require.NoError(t, err, r.GetMethod()+" "+name)
			}
		}
	}
	unread := &guard{rules: g.rules, link: &mirror.Link{}}
	require.ErrorContains(t, unread.allow(applyOf("ours"), now), "has not read its cluster yet")
}

// TestTheAgentsBrake: of what stands, most is not deleted at once unless the hub says that an edit explains it.
func TestTheAgentsBrake(t *testing.T) {
	t.Parallel()
	objects := map[string]mirror.Owner{"theirs": mirror.Foreign}
	for n := range 40 {
		objects[fmt.Sprint("o", n)] = mirror.Marked
	}
	g := guarded(t, objects)
	start := time.Unix(0, 0)
	remove := func(n int, at time.Time, explained bool) error {
		err := g.allow(deletionOf(fmt.Sprint("o", n), explained), at)
		if err == nil {
			g.link.State().Conn.Follow(mirror.ID{Kind: snapshot.ServiceEntry, Namespace: "shop", Name: fmt.Sprint("o", n)}, mirror.Object{Version: 8, Owner: mirror.Marked, Going: true})
		}
		return err
	}
	passed := 0
	for n := range 40 {
		if remove(n, start, false) == nil {
			passed++
		}
	}
	assert.Equal(t, 20, passed, "half of them")
	require.ErrorContains(t, remove(20, start.Add(time.Minute), false), "20 of 40 objects were deleted within 10m0s")
	require.NoError(t, remove(20, start.Add(time.Minute), true), "an edit explains it")
	require.NoError(t, remove(21, start.Add(11*time.Minute), false), "later")
	for n := range 9 {
		require.NoError(t, remove(30+n, start.Add(12*time.Minute), false), "a few are never too many")
	}
}

// TestALeaderOfThePastIsNotObeyed: one that was paused and wakes.
func TestALeaderOfThePastIsNotObeyed(t *testing.T) {
	t.Parallel()
	a := &Agent{options: Options{Plane: snapshot.Plane{ID: "p1"}}}
	hello := func(plane string, epoch uint64, since int64) *relayv1.Hello {
		return &relayv1.Hello{PlaneUid: plane, Epoch: epoch, LeadingSince: since}
	}
	require.NoError(t, a.obey(hello("p1", 3, 100)))
	require.NoError(t, a.obey(hello("p1", 3, 100)), "the next stream")
	require.NoError(t, a.obey(hello("p1", 4, 200)), "another leader")
	require.ErrorContains(t, a.obey(hello("p1", 3, 100)), "leads in term 3, and this agent has obeyed one of term 4")
	require.NoError(t, a.obey(hello("p1", 0, 300)), "the Lease was deleted, and made anew")
	require.ErrorContains(t, a.obey(hello("p2", 9, 900)), `the management plane "p2"`)
	require.Error(t, a.obey(nil))
}
