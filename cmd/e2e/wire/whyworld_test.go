package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// How many random policies there are in a world.
const (
	worldTraffic = 8
	worldAccess  = 8
)

// world has random policies, and draws requests that these tell apart.
type world struct {
	*environment
	random *rand.Rand
	// callers are all workloads, and page is the one that the demo lets call all services.
	callers []proxies.Pod
	page    proxies.Pod
	round   int
	// documents are the policies.
	documents string
	// written are objects of Istio in each cluster, beside these.
	written map[string]string
}

// reclusive is the only caller with a ServiceDependency: it knows no service but ratings of its
// cluster, and what requests for that lead to.
const reclusive = `apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: ServiceDependency
metadata: {name: asked, namespace: gloo-mesh}
spec:
  sourceSelectors:
  - kubeWorkloadMatcher: {labels: {app: reviews, version: v2}, namespaces: [bookinfo], clusters: [cluster-1]}
  destinationSelectors:
  - kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: cluster-1}]}
`

// knows reports whether a caller knows a service, as reclusive says.
func knows(from proxies.Pod, to service) bool {
	return from.Cluster != "cluster-1" || from.Workload != "reviews-v2" || to == service{"cluster-1", "ratings"}
}

// newWorld has random policies instead of those of the demo, for the time of the test.
func newWorld(t *testing.T, e *environment, random *rand.Rand) *world {
	t.Helper()
	w := &world{environment: e, random: random, written: map[string]string{}}
	pods, err := e.pods(t.Context())
	require.NoError(t, err)
	for _, p := range pods {
		if !p.Gateway {
			w.callers = append(w.callers, p)
		}
	}
	slices.SortFunc(w.callers, func(a, b proxies.Pod) int { // so that a seed draws the same
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Workload, b.Workload))
	})
	w.page = e.pod(t, "cluster-1", "productpage-v1")
	t.Cleanup(func() {
		for name := range w.clusters {
			w.write(t, name, "")
		}
		e.without(t, "reviews.global")
		e.apply(t, string(manifests.Policies()))
		waittest.NoError(t, "the policies of the demo are in force", func() error {
			return e.shares(context.WithoutCancel(t.Context()), w.page)
		})
	})
	e.remove(t, string(manifests.Policies()))
	e.during(t, virtualDestination("reviews", "http", 9080))
	e.during(t, reclusive)
	// Round 0 has only what tells that it is in force.
	w.documents = w.told("TrafficPolicy") + w.told("AccessPolicy")
	e.apply(t, w.documents)
	t.Cleanup(func() { e.remove(t, w.documents) })
	waittest.NoError(t, "callers know the VirtualDestination", func() error {
		for _, from := range w.callers {
			x, err := e.one(t.Context(), from, app.Call{URL: "http://reviews.global:9080"})
			if err == nil && x.status == 0 && knows(from, service{}) {
				err = fmt.Errorf("%s of %s: %s", from.Workload, from.Cluster, x.error)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return w
}

// next edits all policies, and waits until proxies have them. Those that tell it are edited last.
func (w *world) next(t *testing.T) {
	t.Helper()
	w.round++
	w.documents = w.traffic() + w.access()
	begin := time.Now()
	written := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		written[name] = w.byHand()
		w.write(t, name, written[name])
	}
	defer func() {
		if t.Failed() {
			t.Log(w.documents, written)
		}
	}()
	w.apply(t, w.documents)
	waittest.NoError(t, "the policies are in force", func() error { return w.inForce(t.Context()) })
	t.Logf("round %d: in force after %s, beside %v", w.round, time.Since(begin).Round(time.Millisecond), w.written)
}

// write replaces what users wrote in a cluster.
func (w *world) write(t *testing.T, cluster, documents string) {
	t.Helper()
	client, err := w.clusters[cluster].Client()
	require.NoError(t, err)
	if before := w.written[cluster]; before != "" {
		require.NoError(t, client.DeleteYAML(context.WithoutCancel(t.Context()), []byte(before)))
	}
	w.written[cluster] = documents
	if documents != "" {
		require.NoError(t, client.ApplyYAML(context.WithoutCancel(t.Context()), []byte(documents)))
	}
}

// byHand draws what users of a cluster write for its Istio.
func (w *world) byHand() string {
	var out strings.Builder
	for i := range w.random.IntN(4) {
		namespace := w.draw("bookinfo", "bookinfo", "bookinfo", "istio-system")
		spec := w.draw("", "selector: {matchLabels: {app: ratings}}, ", "selector: {matchLabels: {app: reviews}}, ", "selector: {matchLabels: {version: v1}}, ", "selector: {matchLabels: {app: gone}}, ") +
			w.draw("action: DENY", "action: DENY", "action: ALLOW", "action: AUDIT") + ", rules: [" + w.rule() + w.some(0.4, func() string { return ", " + w.rule() }) + "]"
		fmt.Fprintf(&out, "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: by-hand-%d, namespace: %s}\nspec: {%s}\n", i, namespace, spec)
	}
	for i := range w.random.IntN(3) {
		spec := w.draw("", "selector: {matchLabels: {app: ratings}}, ", "selector: {matchLabels: {app: reviews, version: v1}}, ", "selector: {matchLabels: {app: details}}, ")
		mode := "mtls: {mode: " + w.draw("STRICT", "PERMISSIVE", "DISABLE") + "}"
		if spec != "" {
			mode += w.some(0.4, func() string { return ", portLevelMtls: {9080: {mode: " + w.draw("STRICT", "DISABLE", "UNSET") + "}}" })
		}
		fmt.Fprintf(&out, "---\napiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: by-hand-%d, namespace: bookinfo}\nspec: {%s%s}\n", i, spec, mode)
	}
	if w.random.IntN(2) == 0 { // of two for a host, the mesh uses the older one
		host := w.draw("ratings", "reviews", "ratings.bookinfo.svc.cluster-1.global", "reviews.bookinfo.svc.cluster-2.global")
		fmt.Fprintf(&out, "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: by-hand, namespace: bookinfo}\nspec: {hosts: [%s], http: [{fault: {abort: {httpStatus: 419, percentage: {value: 100}}}, route: [{destination: {host: %[1]s}}]}]}\n", host)
	}
	return out.String()
}

// rule draws a rule of an AuthorizationPolicy. None is for what is never sent: the others would then be all that there is.
func (w *world) rule() string {
	var parts []string
	for _, p := range []string{
		w.some(0.6, func() string {
			return "from: [{source: {" + w.draw("namespaces: [bookinfo]", "namespaces: ['book*'], notPrincipals: ['*/sa/bookinfo-productpage']", "principals: ['*/sa/bookinfo-productpage']",
				"principals: ['cluster.local/ns/bookinfo/sa/bookinfo-reviews']", "principals: ['*']", "notPrincipals: ['*']", "serviceAccounts: [bookinfo/bookinfo-ratings]", "notNamespaces: [bookinfo]",
				"namespaces: [elsewhere]", "ipBlocks: [203.0.113.0/24]", "requestPrincipals: ['*']") + "}}]"
		}),
		w.some(0.7, func() string {
			return "to: [{operation: {" + w.draw("methods: [GET]", "methods: [POST], paths: ['/a/*']", "paths: ['/a/*']", "paths: ['*.json', /other]", "notPaths: ['/a/*', '/round*']", "paths: ['/{*}/1']",
				"notMethods: [GET, POST]", "ports: ['9080']", "ports: ['9999']", "hosts: ['*.global:9080']") + "}}]"
		}),
		w.some(0.3, func() string {
			return "when: [{key: " + w.draw("'request.headers[x-user]', values: ['yes']", "'request.headers[X-User]', notValues: ['yes']", "'request.headers[x-user]', values: ['*']", "source.namespace, values: [bookinfo]", "destination.port, values: ['9080']") + "}]"
		}),
	} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// told is a policy that proxies show to have, which takes no request of draw, as none has such a
// path. Its route comes before those of random policies, which may take its request, too: only
// exact paths come first, and theirs are others.
func (w *world) told(kind string) string {
	spec := "httpRequestMatchers: [{uri: {exact: " + w.path() + "}}], policy: {faultInjection: {abort: {httpStatus: " + fmt.Sprint(w.status()) + "}}}"
	if kind == "AccessPolicy" {
		spec = "allowedPaths: [" + w.path() + "]"
	}
	return policyDocument(kind, "asked", "destinationSelector: [{kubeServiceMatcher: {namespaces: [bookinfo]}}], "+spec)
}

func (w *world) status() int  { return 460 + w.round }
func (w *world) path() string { return fmt.Sprintf("/round-%d-", w.round) }

func policyDocument(kind, name, spec string) string {
	return fmt.Sprintf("---\napiVersion: networking.mesh.gloo.solo.io/v1\nkind: %s\nmetadata: {name: %s, namespace: gloo-mesh}\nspec: {%s}\n", kind, name, spec)
}

// inForce returns an error unless the server has processed all policies, and all proxies have what
// follows from them: routes of callers, and rules of pods. Connections that are open may have
// those from before.
func (w *world) inForce(ctx context.Context) error {
	for resource, n := range map[string]int{"trafficpolicies": worldTraffic, "accesspolicies": worldAccess} {
		for i := range n {
			if err := w.processed(ctx, resource, fmt.Sprintf("asked-%d", i)); err != nil {
				return err
			}
		}
	}
	for _, from := range w.callers {
		for _, to := range services() {
			if !knows(from, to) {
				continue
			}
			s := target{w.environment, from, "http://" + to.host(from.Cluster)}
			if err := s.want(ctx, w.status(), app.Call{URL: w.path()}); err != nil {
				return fmt.Errorf("%s of %s: %s: %w", from.Workload, from.Cluster, s.url, err)
			}
		}
		if err := w.hasRule(ctx, from, w.path()); err != nil {
			return err
		}
	}
	return nil
}

// processed returns an error unless the server has processed a policy as it is.
func (e *environment) processed(ctx context.Context, resource, name string) error {
	o, err := e.management.Get(ctx, kube.Policies(resource), "gloo-mesh", name)
	if err != nil {
		return err
	}
	if observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); observed != o.GetGeneration() {
		return fmt.Errorf("%s %s: generation %d, observed %d", resource, name, o.GetGeneration(), observed)
	}
	return nil
}

// hasRule returns an error unless the rules that a pod goes by name a path.
func (e *environment) hasRule(ctx context.Context, p proxies.Pod, path string) error {
	data, err := e.plane.Admin(ctx, p, "config_dump?resource=dynamic_listeners&name_regex=virtualInbound")
	if err != nil {
		return err
	}
	var dump struct {
		Configs []struct {
			Active json.RawMessage `json:"active_state"`
		}
	}
	if err := json.Unmarshal(data, &dump); err != nil {
		return err
	}
	if len(dump.Configs) != 1 || !strings.Contains(string(dump.Configs[0].Active), path) {
		return errors.New(p.Workload + " of " + p.Cluster + " has no rule for " + path)
	}
	return nil
}

// draw takes one of a list.
func (w *world) draw(list ...string) string { return list[w.random.IntN(len(list))] }

// some is a text with a probability, or else empty.
func (w *world) some(probability float64, text func() string) string {
	if w.random.Float64() < probability {
		return text()
	}
	return ""
}

func (w *world) traffic() string {
	var out strings.Builder
	for i := range worldTraffic {
		out.WriteString(policyDocument("TrafficPolicy", fmt.Sprintf("asked-%d", i), w.trafficSpec()))
	}
	return out.String() + w.told("TrafficPolicy")
}

func (w *world) access() string {
	var out strings.Builder
	for i := range worldAccess {
		out.WriteString(policyDocument("AccessPolicy", fmt.Sprintf("asked-%d", i), w.accessSpec()))
	}
	return out.String() + w.told("AccessPolicy")
}

// destinations draws the services of a policy.
func (w *world) destinations() string {
	s := services()[w.random.IntN(len(services()))]
	return "destinationSelector: [" + w.draw(
		fmt.Sprintf("{kubeServiceRefs: {services: [{name: %s, namespace: bookinfo, clusterName: %s}]}}", s.name, s.cluster),
		fmt.Sprintf("{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: %s}]}}", s.cluster),
		fmt.Sprintf("{kubeServiceMatcher: {labels: {service: %s}}}", s.name),
		fmt.Sprintf("{kubeServiceMatcher: {namespaces: [bookinfo], clusters: [%s]}}", s.cluster),
	) + "]"
}

func (w *world) trafficSpec() string {
	spec := w.destinations()
	if w.random.Float64() < 0.08 { // for all requests, or for none
		return spec + ", policy: {mtls: {istio: {tlsMode: DISABLE}}}"
	}
	spec += w.some(0.3, func() string {
		return ", sourceSelector: [{kubeWorkloadMatcher: " + w.draw("{namespaces: [bookinfo], clusters: [cluster-1]}", "{labels: {app: productpage}}", "{labels: {app: reviews}, clusters: [cluster-2]}", "{labels: {version: v1}}") + "}]"
	})
	spec += w.some(0.8, func() string {
		return ", httpRequestMatchers: [" + w.matcher() + w.some(0.3, func() string { return ", " + w.matcher() }) + "]"
	})
	var policy []string
	for _, p := range []string{
		w.some(0.6, w.shift),
		w.some(0.3, func() string {
			return "faultInjection: {abort: {httpStatus: " + w.draw("418", "503") + "}" + w.draw("", "", ", percentage: 50") + "}"
		}),
		w.some(0.4, func() string {
			return "headerManipulation: {appendRequestHeaders: {x-added: " + w.draw("one", "two") + "}, removeRequestHeaders: [" + w.draw("x-secret", "x-user") + "], appendResponseHeaders: {x-answer: " + w.draw("one", "two") + "}" + w.draw("", ", removeResponseHeaders: [content-type]") + "}"
		}),
		w.some(0.15, func() string { return "csrf: {filterEnabled: true, additionalOrigins: [{exact: friend.example}]}" }),
		w.some(0.2, func() string { return "requestTimeout: 9s" }),
		w.some(0.2, func() string { return "retries: {attempts: 2}" }),
	} {
		if p != "" {
			policy = append(policy, p)
		}
	}
	return spec + ", policy: {" + strings.Join(policy, ", ") + "}"
}

// shift draws a trafficShift in which no share is below leastShare, but for those of 0.
func (w *world) shift() string {
	var all []string
	seen := map[string]bool{}
	for range 1 + w.random.IntN(3) {
		s := services()[w.random.IntN(len(services()))]
		named := "kubeService: {name: " + s.name + ", namespace: bookinfo, clusterName: " + s.cluster
		switch w.random.IntN(8) {
		case 0:
			named = "virtualDestination: {name: reviews, namespace: gloo-mesh"
		case 1:
			named = "kubeService: {name: gone, namespace: bookinfo, clusterName: " + s.cluster
		case 2, 3, 4, 5:
			// In the first cluster there is no version 3.
			named = "kubeService: {name: reviews, namespace: bookinfo, clusterName: " + s.cluster + ", subset: {version: " + w.draw("v1", "v2", "v3") + "}"
		}
		if seen[named] {
			continue
		}
		seen[named] = true
		options := w.some(0.3, func() string {
			return ", options: {headerManipulation: {appendRequestHeaders: {x-target: " + w.draw("one", "two") + "}, removeRequestHeaders: [x-other]}}"
		})
		weight := w.draw("20", "40", "70")
		if len(all) > 0 && w.random.IntN(5) == 0 {
			weight = "0"
		}
		all = append(all, "{"+named+"}, weight: "+weight+options+"}")
	}
	return "trafficShift: {destinations: [" + strings.Join(all, ", ") + "]}"
}

func (w *world) matcher() string {
	var all []string
	for _, m := range []string{
		w.some(0.6, func() string {
			return "uri: {" + w.draw("prefix: /a", "prefix: /", "exact: /a/b.json", "suffix: .json", "regex: '/v[0-9]/.*'", "exact: /other, ignoreCase: true", "prefix: /A/, ignoreCase: true") + "}"
		}),
		w.some(0.3, func() string { return "method: " + w.draw("GET", "POST") }),
		w.some(0.4, func() string {
			return "headers: [" + w.draw("{name: x-user}", "{name: X-User, value: 'yes'}", "{name: x-user, value: 'yes', invertMatch: true}", "{name: x-user, invertMatch: true}", "{name: x-user, value: '[a-z]+', regex: true}", "{name: x-user, value: '[a-z]*', regex: true, invertMatch: true}") + "]"
		}),
		w.some(0.2, func() string {
			return "queryParameters: [" + w.draw("{name: lang, value: en}", "{name: lang}", "{name: page, value: '[0-9]+', regex: true}") + "]"
		}),
	} {
		if m != "" {
			all = append(all, m)
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (w *world) accessSpec() string {
	spec := w.destinations()
	spec += w.some(0.9, func() string {
		return ", sourceSelector: [" + w.draw(
			"{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-productpage, namespace: bookinfo, clusterName: cluster-1}]}}",
			"{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: "+w.draw("cluster-1", "cluster-2")+"}]}}",
			"{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-ratings, namespace: bookinfo}]}}",
			"{kubeIdentityMatcher: {namespaces: [bookinfo]}}",
			"{kubeIdentityMatcher: {namespaces: [elsewhere]}}",
			"{kubeIdentityMatcher: {clusters: ["+w.draw("cluster-1", "cluster-2")+"]}}",
		) + "]"
	})
	spec += w.some(0.25, func() string { return ", action: DENY" }) + w.some(0.15, func() string { return ", enforcement: AUDIT" })
	spec += w.some(0.3, func() string { return ", allowedMethods: " + w.draw("[GET]", "[POST, PUT]", "['*']") })
	return spec + w.some(0.3, func() string {
		return ", allowedPaths: " + w.draw("[/a/*]", "['*.json', /other]", "['/a/{*}']", "['/{**}/b.json']", "['*']")
	})
}

// ask is a request, and who sends it to whom.
type ask struct {
	from proxies.Pod
	// to is what the caller calls it.
	to     string
	method string
	path   string
	// headers have one value each. With several, proxies differ: up to 1.38, Envoy compares them as
	// one, separated by commas, and since then each by itself, so that why rejects them
	// (envoy.reloadable_features.match_headers_individually).
	headers http.Header
	// past: the callers' proxies may not know what is called, and pass requests on, without an identity. Here, nothing is on that way, so
	// that such an answer is not compared.
	past bool
}

func (a ask) String() string {
	return fmt.Sprintf("%s of %s to %s: %s %s %v", a.from.Workload, a.from.Cluster, a.to, a.method, a.path, a.headers)
}

// workload is the name of who sends it.
func (a ask) workload() string {
	return a.from.Workload + "." + a.from.Namespace + "." + a.from.Cluster
}

// request draws a request.
func (w *world) request() ask {
	a := ask{from: w.callers[w.random.IntN(len(w.callers))], method: w.draw("GET", "GET", "POST", "PUT", "DELETE"), headers: http.Header{}}
	if w.random.IntN(4) == 0 {
		a.from = w.page
	}
	s := services()[w.random.IntN(len(services()))]
	if w.random.IntN(3) == 0 {
		s.name = "reviews"
	}
	a.to, a.past = s.host(a.from.Cluster), !knows(a.from, s)
	switch w.random.IntN(10) {
	case 0:
		a.to, a.past = "reviews.global:9080", !knows(a.from, service{})
	case 1:
		a.to = strings.Replace(a.to, ":9080", ":9999", 1)
	case 2, 3:
		if s.cluster == a.from.Cluster {
			a.to = s.name + ":9080"
		}
	}
	a.path = w.draw("/", "/other", "/Other", "/a/b.json", "/a/1", "/A/1", "/a/b/c.json", "/v1/x.json", "/v1/any?lang=en&page=2", "/v1/any?page=x&lang=de", "/a/1?lang=")
	for range w.random.IntN(4) {
		a.headers.Set(w.draw("X-User", "X-User", "X-Secret", "X-Other", "X-Added"), w.draw("yes", "abc", "1", ""))
	}
	if w.random.IntN(3) == 0 {
		a.headers.Set("Origin", w.draw("http://evil.example", "http://friend.example", "http://"+a.to))
	}
	return a
}
