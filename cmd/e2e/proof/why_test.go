package proof

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// requestsPerPort are sent, in thought, by each sidecar to each port that it knows.
const requestsPerPort = 3

// askWhy asks for random requests of each sidecar what becomes of them, and compares that with the
// configuration of the sidecar and of those of the pods where they end.
func (w *environment) askWhy(t *testing.T, name string, configs map[string]*envoy.Config) {
	t.Helper()
	index := explain.New(w.state)
	seed := waittest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	pool := poolOf(w.state.Plan)
	var wrong []string
	for _, p := range w.proxies {
		from, found := w.workloadOf(p)
		if p.gateway || !found {
			continue
		}
		for d := range w.state.Plan.Destinations.All() {
			for _, port := range portsFor(d, requests) {
				if slices.Contains(portsFor(d, connections), port) {
					continue // what proxies detect is not only HTTP
				}
				for range requestsPerPort {
					request := pool.request(random, port)
					answer := index.Why(from, d.Ref, request)
					require.NotNil(t, answer, "%s to %s", from, d.Ref)
					if difference := w.differs(p, d, answer, configs); difference != "" {
						wrong = append(wrong, fmt.Sprintf("%s to %s, %+v: %s", p, d.Ref, request, difference))
					}
				}
			}
		}
	}
	assert.Empty(t, wrong, "%s, seed %d", name, seed)
}

// workloadOf is the Workload with the pod of a proxy.
func (w *environment) workloadOf(p proxy) (snapshot.Ref, bool) {
	for _, o := range w.state.Plan.Workloads {
		k := o.Spec.Kubernetes
		if k != nil && k.Controller.ClusterName == p.cluster && k.Controller.Namespace == p.namespace && contains(p.labels, k.PodLabels) {
			return snapshot.RefOf(snapshot.Workload, o), true
		}
	}
	return snapshot.Ref{}, false
}

// pastTheMesh is what an answer leaves open where the proxy of the caller does not know the host, and passes on what is for it.
const pastTheMesh = "whether the network of the cluster lets them reach its pods past the mesh"

// differs says how an answer differs from what proxies do; empty if it does not.
func (w *environment) differs(p proxy, d *snapshot.DestinationPlan, answer *explain.Why, configs map[string]*envoy.Config) string {
	config := configs[p.String()]
	if answer.Host == "" || len(answer.Outcomes) == 0 && answer.Route == nil {
		w.asked[explain.Unreachable]++
		host := d.LocalFQDN
		if d.Mesh.Cluster != p.cluster {
			if d.Federation == nil {
				return ""
			}
			host = d.Federation.Hostname
		}
		if config.VirtualHost(host, answer.Request.Port) != nil {
			return "it says " + answer.Reason + ", but the proxy knows " + host
		}
		return ""
	}
	host := config.VirtualHost(answer.Host, answer.Request.Port)
	request := envoy.Request{Method: answer.Request.Method, Path: answer.Request.Path, Headers: answer.Request.Headers, Principal: answer.Identity}
	switch past := slices.Contains(answer.NotEvaluated, pastTheMesh); {
	case past && host != nil:
		return "it says that the proxy passes it on as it is, but the proxy knows " + answer.Host
	case past:
	case host == nil:
		return "the proxy does not know " + answer.Host
	default:
		route := host.RouteFor(request)
		if route == nil {
			return "no route takes it"
		}
		if difference := routeDiffers(answer, route); difference != "" {
			return difference
		}
	}
	for i := range answer.Outcomes {
		if difference := w.outcomeDiffers(&answer.Outcomes[i], request, configs); difference != "" {
			return difference
		}
	}
	w.asked[answer.Verdict]++
	return ""
}

// routeDiffers compares where requests go, and how long they may take. Requests that proxies answer themselves go nowhere.
func routeDiffers(answer *explain.Why, route *envoy.Route) string {
	if len(answer.Outcomes) == 0 && answer.Route != nil {
		return ""
	}
	said, done := map[string]float64{}, map[string]float64{}
	for _, o := range answer.Outcomes {
		switch {
		case o.Idle:
		case o.Share == nil:
			return "" // pods decide
		default:
			said[clusterName(o.Host, o.Port, o.Subset)] += *o.Share
		}
	}
	var sum float64
	targets := route.Route.Targets()
	for _, target := range targets {
		sum += float64(target.Weight)
	}
	for _, target := range targets {
		switch {
		case len(targets) == 1:
			done[target.Name] = 100
		case target.Weight > 0:
			done[target.Name] += 100 * float64(target.Weight) / sum
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(said)), slices.Sorted(maps.Keys(done))) {
		return fmt.Sprintf("it goes to %v, not %v", done, said)
	}
	for name, share := range said {
		if difference := share - done[name]; difference > 0.01 || difference < -0.01 {
			return fmt.Sprintf("it goes to %v, not %v", done, said)
		}
	}
	timeout := time.Duration(0)
	if answer.Route != nil {
		for _, s := range answer.Route.Settings {
			if s.Name == "timeout" {
				timeout, _ = time.ParseDuration(s.Value)
			}
		}
	}
	if route.Route.Timeout != "" && route.Route.Timeout != protoDuration(timeout) {
		return fmt.Sprintf("its timeout is %s, not %s", route.Route.Timeout, timeout)
	}
	return ""
}

// outcomeDiffers compares whether the pods where requests end let them in.
func (w *environment) outcomeDiffers(o *explain.Outcome, request envoy.Request, configs map[string]*envoy.Config) string {
	var d *snapshot.DestinationPlan
	for each := range w.state.Plan.Destinations.All() {
		if each.Ref == o.Destination {
			d = each
		}
	}
	if d == nil || o.Verdict == explain.Unreachable {
		return ""
	}
	port := cmp.Or(o.ServicePort, o.Port)
	if !slices.Contains(portsFor(d, requests), port) || slices.Contains(portsFor(d, connections), port) {
		return ""
	}
	request.Port = podPort(d, port)
	if len(o.Hops) > 0 {
		request.Principal = o.Hops[len(o.Hops)-1].Identity
	}
	service := d.Destination.Spec.KubeService
	for _, p := range w.proxies {
		if p.cluster != d.Mesh.Cluster || p.namespace != service.Ref.Namespace || len(service.WorkloadSelectorLabels) == 0 || !contains(p.labels, service.WorkloadSelectorLabels) {
			continue
		}
		for _, chain := range configs[p.String()].HTTPFilters(15006, request.Port) {
			admitted := !slices.ContainsFunc(chain, func(f envoy.Filter) bool {
				return f.Name == httpRBAC && f.TypedConfig.Rules.Decide(request).Answer != envoy.Yes
			})
			if admitted != (o.Verdict == explain.Allowed) {
				return fmt.Sprintf("%s: admitted is %t, but the answer is %s: %s", p, admitted, o.Verdict, o.Reason)
			}
		}
	}
	return ""
}

// pool is what requests are made of: what policies ask for, and other things.
type pool struct {
	methods, paths, values []string
	headers                []string
}

func poolOf(plan *snapshot.Plan) *pool {
	p := &pool{
		methods: []string{"GET", "POST", "DELETE"}, paths: []string{"/", "/other", "/a/b.json"}, values: []string{"", "yes", "1"}, headers: []string{"x-other"},
	}
	for _, each := range plan.Policies {
		switch policy := each.Policy.(type) {
		case *networkingv1.TrafficPolicy:
			for _, m := range policy.Spec.HttpRequestMatchers {
				p.add(&m)
			}
		case *networkingv1.AccessPolicy:
			p.methods = append(p.methods, policy.Spec.AllowedMethods...)
			for _, path := range policy.Spec.AllowedPaths {
				p.paths = append(p.paths, strings.NewReplacer("{**}", "a/b", "{*}", "a", "*", "/any").Replace(path))
			}
		}
	}
	p.paths = slices.DeleteFunc(p.paths, func(path string) bool { return !strings.HasPrefix(path, "/") })
	return p
}

func (p *pool) add(m *networkingv1.HttpMatcher) {
	if m.Method != "" {
		p.methods = append(p.methods, m.Method)
	}
	if u := m.Uri; u != nil {
		p.paths = append(p.paths, u.Exact, u.Prefix, u.Prefix+"more", strings.ToUpper(u.Exact), "/any"+u.Suffix, "/v1/any")
	}
	for _, h := range m.Headers {
		p.headers, p.values = append(p.headers, h.Name), append(p.values, h.Value, "abc")
	}
	for _, q := range m.QueryParameters {
		p.paths = append(p.paths, "/v1/any?"+q.Name+"="+q.Value+"&lang=en&page=2", "/v1/any?page=2&lang=en")
	}
}

func (p *pool) request(random *rand.Rand, port uint32) explain.Request {
	one := func(list []string) string { return list[random.IntN(len(list))] }
	out := explain.Request{Method: one(p.methods), Path: one(p.paths), Port: port, Headers: map[string]string{}}
	for range random.IntN(4) {
		out.Headers[strings.ToLower(one(p.headers))] = one(p.values)
	}
	return out
}

// randomWorlds are made after all cases.
const randomWorlds = 5

// proveRandom writes random policies, and proves what the Plan makes of them, whether or not it accepts them.
func (w *environment) proveRandom(t *testing.T, round int) {
	t.Helper()
	seed := waittest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	name := fmt.Sprintf("random world %d, seed %d", round, seed)
	var services []*snapshot.DestinationPlan
	for d := range w.state.Plan.Destinations.All() {
		if s := d.Destination.Spec.KubeService; s != nil && s.Ref.Namespace == "bookinfo" {
			services = append(services, d)
		}
	}
	require.NotEmpty(t, services)
	written := map[string]int64{}
	for i := range 6 {
		for kind, spec := range map[string]string{"TrafficPolicy": randomTraffic(random, services), "AccessPolicy": randomAccess(random, services)} {
			object := fmt.Sprintf("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: %s\nmetadata: {name: random-%d, namespace: gloo-mesh}\nspec: %s\n", kind, i, spec)
			w.write(t.Context(), t, object)
			written[fmt.Sprintf("%s random-%d", kind, i)] = w.generation(t, kind, fmt.Sprintf("random-%d", i))
		}
	}
	_, configs, _ := w.converge(t, func(plan *snapshot.Plan) error { return readPolicies(plan, written) })
	w.askWhy(t, name, configs)
}

func randomTraffic(random *rand.Rand, services []*snapshot.DestinationPlan) string {
	one := func(list ...string) string { return list[random.IntN(len(list))] }
	spec := "{destinationSelector: [" + selector(random, services) + "], httpRequestMatchers: [{" + one(
		"uri: {prefix: /a}", "uri: {exact: /a/b.json}", "uri: {suffix: .json}", "uri: {regex: '/v[0-9]/.*'}", "uri: {exact: /Other, ignoreCase: true}",
	) + one("", ", method: GET", ", method: POST") + one("", ", headers: [{name: x-user}]", ", headers: [{name: x-user, value: 'yes', invertMatch: true}]", ", headers: [{name: x-user, value: '[a-z]+', regex: true}]") +
		one("", ", queryParameters: [{name: lang, value: en}]") + "}]"
	spec += one("", ", sourceSelector: [{kubeWorkloadMatcher: {namespaces: [bookinfo]}}]", ", sourceSelector: [{kubeWorkloadMatcher: {labels: {app: productpage}}}]")
	to := services[random.IntN(len(services))].Destination.Spec.KubeService.Ref
	return spec + fmt.Sprintf(", policy: {requestTimeout: %ds, trafficShift: {destinations: [{weight: %d, kubeService: {name: %s, namespace: %s, clusterName: %s}}]}}}",
		1+random.IntN(9), 1+random.IntN(9), to.Name, to.Namespace, to.ClusterName)
}

func randomAccess(random *rand.Rand, services []*snapshot.DestinationPlan) string {
	one := func(list ...string) string { return list[random.IntN(len(list))] }
	return "{destinationSelector: [" + selector(random, services) + "], sourceSelector: [" + one(
		"{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-productpage, namespace: bookinfo, clusterName: cluster-1}]}}",
		"{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: cluster-2}]}}",
		"{kubeIdentityMatcher: {namespaces: [bookinfo]}}", "{kubeIdentityMatcher: {namespaces: [bookinfo], clusters: [cluster-2]}}",
	) + "]" + one("", ", allowedMethods: [GET]", ", allowedMethods: [POST, PUT]") + one("", ", allowedPaths: [/a/*]", ", allowedPaths: ['*.json', /other]", ", allowedPaths: ['/a/{*}']") + "}"
}

func selector(random *rand.Rand, services []*snapshot.DestinationPlan) string {
	s := services[random.IntN(len(services))].Destination.Spec.KubeService.Ref
	return fmt.Sprintf("{kubeServiceRefs: {services: [{name: %s, namespace: %s, clusterName: %s}]}}", s.Name, s.Namespace, s.ClusterName)
}
