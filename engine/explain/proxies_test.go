package explain_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// heldProxies are what the proxies of a demo answered, and their pods.
type heldProxies struct {
	pods map[string][]explain.ProxyPod
	// edits are made in all configurations.
	edits []string
	// denied is the pod whose proxy cannot be read.
	denied  string
	patches []string
	asked   []string
}

func newHeldProxies() *heldProxies {
	pod := func(cluster, name, ip string, containers ...string) explain.ProxyPod {
		namespace := "bookinfo"
		if strings.HasPrefix(name, "east") {
			namespace = "istio-system"
		}
		return explain.ProxyPod{Cluster: cluster, Namespace: namespace, Name: name, Owner: name, IPs: []string{ip}, Containers: append(containers, "istio-proxy")}
	}
	return &heldProxies{
		pods: map[string][]explain.ProxyPod{
			"cluster-1 productpage":     {pod("cluster-1", "productpage", "10.1.0.2", "productpage")},
			"cluster-1 reviews":         {pod("cluster-1", "reviews-v1", "10.1.0.1", "reviews"), pod("cluster-1", "reviews-v2", "10.1.0.11", "reviews")},
			"cluster-1 ratings":         {pod("cluster-1", "ratings-v1", "10.1.0.10", "ratings")},
			"cluster-2 reviews":         {pod("cluster-2", "reviews-v3", "10.2.0.9", "reviews")},
			"cluster-2 eastwestgateway": {pod("cluster-2", "eastwestgateway", "10.2.0.1")},
		},
		// The demo's addresses and trust domains are not those of the case.
		edits: []string{"192.0.2.34", "172.18.0.102", "cluster-1.example", "cluster.local", "cluster-2.example", "cluster.local", "no-puts", "by-hand"},
	}
}

func (h *heldProxies) Pods(cluster, _ string, labels map[string]string) ([]explain.ProxyPod, error) {
	name := labels["app"]
	if labels["istio"] == "eastwestgateway" {
		name = "eastwestgateway"
	}
	return h.pods[cluster+" "+name], nil
}

func (h *heldProxies) Config(pod explain.ProxyPod, port uint32) (*envoy.Config, error) {
	if port != 15000 {
		return nil, errors.New("another port")
	}
	if pod.Name == h.denied {
		return nil, errors.New("pod " + pod.String() + ": you may not")
	}
	h.asked = append(h.asked, pod.String())
	data, err := os.ReadFile(filepath.Join("../envoy/testdata", pod.Name+"-"+pod.Cluster+".json"))
	if err != nil {
		return nil, err
	}
	return envoy.ParseDump([]byte(strings.NewReplacer(h.edits...).Replace(string(data))))
}

func (h *heldProxies) Patches(pod explain.ProxyPod, kind snapshot.ProxyPatch, namespace string) ([]string, error) {
	if kind.Kind == "EnvoyFilter" && namespace == pod.Namespace {
		return h.patches, nil
	}
	return nil, nil
}

// inProxies asks what becomes of a request of productpage, and what the proxies do with it.
func inProxies(t *testing.T, h *heldProxies, to string, request explain.Request) *explain.Why {
	t.Helper()
	index := explain.New(engine.Translate(load(t, "bookinfo")))
	ref := func(kind snapshot.Kind, name string) snapshot.Ref {
		found := index.Find(kind, name)
		require.NotEmpty(t, found, name)
		return found[0]
	}
	why := index.Why(ref(snapshot.Workload, "productpage-v1-bookinfo-cluster-1-deployment"), ref(snapshot.Destination, to), request)
	require.NotNil(t, why)
	explain.AddProxies(index, why, h)
	wellFormed(t, why)
	return why
}

// TestProxiesDiffer: the case has other shares and a timeout, and the policy that users wrote is not in it.
func TestProxiesDiffer(t *testing.T) {
	t.Parallel()
	held := newHeldProxies()
	why := inProxies(t, held, "reviews-bookinfo-cluster-1", explain.Request{})
	p := why.Proxies
	assert.Equal(t, explain.Partly, p.Verdict, p.Reason)
	assert.False(t, p.Agrees)
	assert.False(t, why.IsAllowed())
	assert.Equal(t, []string{
		"cluster-1/bookinfo/productpage", "cluster-2/istio-system/eastwestgateway", "cluster-2/bookinfo/reviews-v3", "cluster-1/bookinfo/reviews-v1", "cluster-1/bookinfo/reviews-v2",
	}, held.asked)
	route := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "cluster-1", Namespace: "bookinfo", Name: "reviews"}
	const shares = "reviews.bookinfo.svc.cluster"
	assert.Equal(t, []explain.ProxyDifference{
		{
			What:    "route",
			Objects: "75% " + shares + ".local:9080 (version-v1), 15% " + shares + ".local:9080 (version-v2), 10% " + shares + "-2.global:9080 (version-v3)",
			Proxies: "75% " + shares + "-2.global:9080 (version-v3), 15% " + shares + ".local:9080 (version-v1), 10% " + shares + ".local:9080 (version-v2)",
			By:      []snapshot.Ref{route},
		},
		{What: "timeout", Objects: "3s", Proxies: "none", By: []snapshot.Ref{route}},
		{
			What: "access", Objects: "ALLOWED: AccessPolicy gloo-mesh/productpage-calls allows it",
			Proxies: "REFUSED: pod cluster-1/bookinfo/reviews-v1: policy ns[bookinfo]-policy[by-hand]-rule[0] denies it",
			By:      []snapshot.Ref{{Kind: snapshot.AuthorizationPolicy, Cluster: "cluster-1", Namespace: "bookinfo", Name: "by-hand"}},
		},
	}, withoutPods(t, p.Differences))
}

// withoutPods are differences as they are printed.
func withoutPods(t *testing.T, list []explain.ProxyDifference) (out []explain.ProxyDifference) {
	t.Helper()
	data, err := json.Marshal(list)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func TestProxiesAnswer(t *testing.T) {
	t.Parallel()
	const routes = `"name": "reviews.bookinfo.svc.cluster.local:9080", "routes": [`
	for _, tt := range []struct {
		name    string
		to      string
		change  func(h *heldProxies)
		verdict explain.Verdict
		reason  string
		// differs is the first difference, and by who makes it.
		differs, by string
	}{
		{"no right", "reviews-bookinfo-cluster-1", func(h *heldProxies) { h.denied = "productpage" }, explain.Unknown, "pod cluster-1/bookinfo/productpage: you may not", "", ""},
		{"no right at a called pod", "ratings-bookinfo-cluster-1", func(h *heldProxies) { h.denied = "ratings-v1" }, explain.Unknown, "pod cluster-1/bookinfo/ratings-v1: you may not", "", ""},
		{"no pod", "reviews-bookinfo-cluster-1", func(h *heldProxies) { delete(h.pods, "cluster-1 productpage") }, explain.Unknown, "no pod of workload productpage-v1-bookinfo-cluster-1-deployment runs: start one", "", ""},
		{"no sidecar", "reviews-bookinfo-cluster-1", func(h *heldProxies) { h.pods["cluster-1 productpage"][0].Containers = []string{"productpage"} }, explain.Unknown, "pod cluster-1/bookinfo/productpage has no sidecar (no container istio-proxy), so no proxy decides there; see: meshctl describe workload", "", ""},
		{"ambient", "reviews-bookinfo-cluster-1", func(h *heldProxies) {
			h.pods["cluster-1 productpage"][0].Containers, h.pods["cluster-1 productpage"][0].Ambient = nil, true
		}, explain.Unknown, "pod cluster-1/bookinfo/productpage is in ambient mode: what ztunnel and waypoints hold is not evaluated", "", ""},
		{"a gateway calls", "reviews-bookinfo-cluster-1", func(h *heldProxies) { h.pods["cluster-1 productpage"][0].Gateway = true }, explain.Unknown, "where such requests enter at the gateway is not known, so there is nothing to ask its proxy for: ask with the header host as NAME:PORT", "", ""},
		{"a gateway is gone", "reviews-bookinfo-cluster-2", func(h *heldProxies) { delete(h.pods, "cluster-2 eastwestgateway") }, explain.Unreachable, "no pod of gateway istio-system/istio-eastwestgateway of cluster-2 runs", "access", ""},
		{"a pod that has ended", "ratings-bookinfo-cluster-1", func(h *heldProxies) { delete(h.pods, "cluster-1 ratings") }, explain.Unknown, "the endpoint 10.1.0.10:9080 is no pod of cluster-1 that was found: it may have ended, and proxies not know that yet", "", ""},
		{"a called pod has no sidecar", "ratings-bookinfo-cluster-1", func(h *heldProxies) { h.pods["cluster-1 ratings"][0].Containers = []string{"ratings"} }, explain.Allowed, "pod cluster-1/bookinfo/ratings-v1 has no sidecar, so that nothing there decides who calls it", "access", ""},
		{"the proxy passes on what it does not know", "ratings-bookinfo-cluster-1", func(h *heldProxies) {
			h.edits = append(h.edits, `"cluster": "outbound|9080||ratings.bookinfo.svc.cluster.local"`, `"cluster": "PassthroughCluster"`)
			h.pods["cluster-1 ratings"][0].IPs = []string{"10.1.1.13"} // as the folder has it
		}, explain.Refused, "pod cluster-1/bookinfo/ratings-v1 lets in only what a policy allows, and none does", "route", ""},
		{"TLS is off at the pods", "ratings-bookinfo-cluster-1", func(*heldProxies) {}, explain.Refused, "pod cluster-1/bookinfo/ratings-v1 lets in only what a policy allows, and none does", "", ""},
		{"the proxy answers", "reviews-bookinfo-cluster-1", func(h *heldProxies) {
			h.edits = append(h.edits, routes, routes+`{"match": {"prefix": "/"}, "direct_response": {"status": 418}}, `)
			h.patches = []string{"teapot"}
		}, explain.Unreachable, "the proxy of the caller sends nothing on: the route answers it (status 418)", "verdict", "EnvoyFilter cluster-1/bookinfo/teapot"},
		{"no such cluster", "reviews-bookinfo-cluster-2", func(h *heldProxies) {
			h.edits = append(h.edits, `"name": "outbound|9080||reviews.bookinfo.svc.cluster-2.global", "outlier_detection"`, `"name": "gone", "outlier_detection"`, `"cluster": "outbound|9080||reviews.bookinfo.svc.cluster-2.global"`, `"cluster": "outbound|9080|v9|reviews.bookinfo.svc.cluster-2.global"`)
			h.patches = []string{"moved"}
		}, explain.Unreachable, "in the proxy of the caller: it has no cluster outbound|9080|v9|reviews.bookinfo.svc.cluster-2.global", "route", "EnvoyFilter cluster-1/bookinfo/moved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			held := newHeldProxies()
			tt.change(held)
			why := inProxies(t, held, tt.to, explain.Request{})
			p := why.Proxies
			assert.Equal(t, tt.verdict, p.Verdict)
			assert.Contains(t, p.Reason, tt.reason)
			assert.Equal(t, tt.differs == "", p.Agrees, "%+v", p.Differences)
			if tt.differs != "" {
				at := slices.IndexFunc(p.Differences, func(d explain.ProxyDifference) bool { return d.What == tt.differs })
				require.GreaterOrEqual(t, at, 0, "%+v", p.Differences)
				assert.Equal(t, tt.by, strings.Join(p.Differences[at].Perhaps, ","))
			}
			assert.False(t, why.IsAllowed())
		})
	}
}

// TestProxiesOfManyTargets: what a proxy holds is not trusted, so an answer is bounded.
func TestProxiesOfManyTargets(t *testing.T) {
	t.Parallel()
	held := newHeldProxies()
	target := `{"name": "outbound|9080|` + strings.Repeat("v", 5000) + `|reviews.bookinfo.svc.cluster.local", "weight": 1}`
	held.edits = append([]string{`"weighted_clusters": {"clusters": [`, `"weighted_clusters": {"clusters": [` + strings.Repeat(target+",", 500)}, held.edits...)
	p := inProxies(t, held, "reviews-bookinfo-cluster-1", explain.Request{}).Proxies
	assert.Len(t, p.Outcomes, 100)
	assert.Contains(t, p.Notes, "the route has 503 targets: not all were looked at")
	data, err := json.Marshal(p)
	require.NoError(t, err)
	assert.Less(t, len(data), 200_000)
}

// TestSampleOfProxies: a check of what proxies hold fails where they differ.
func TestSampleOfProxies(t *testing.T) {
	t.Parallel()
	index := explain.New(engine.Translate(load(t, "bookinfo")))
	random := rand.New(rand.NewPCG(7, 0))
	answers := explain.SampleProxies(index, 1000, random.IntN, newHeldProxies(), func() bool { return false })
	require.NotEmpty(t, answers)
	checkup := index.Checkup(&explain.CheckFacts{Proxies: &explain.CheckedProxies{Wanted: 1000, Seed: 7, Answers: answers}})
	at := slices.IndexFunc(checkup.Categories, func(c explain.CheckCategory) bool { return c.Title == "Proxies" })
	require.GreaterOrEqual(t, at, 0)
	var failed, unknown []string
	for _, c := range checkup.Categories[at].Checks {
		switch c.Result {
		case explain.CheckFailure:
			failed = append(failed, c.ID+": "+c.Message)
			assert.Equal(t, c.ID == "proxies/more", !strings.Contains(c.Hint, "--proxy"), c.ID)
		case explain.CheckWarning:
			unknown = append(unknown, c.Description+": "+c.Message)
		case explain.CheckOK:
			assert.Contains(t, c.Message, "seed 7")
		}
	}
	assert.Contains(t, strings.Join(failed, "\n"), "proxies/productpage-v1-bookinfo-cluster-1-deployment/reviews-bookinfo-cluster-1: route differs: ")
	assert.Contains(t, strings.Join(unknown, "\n"), "not evaluated: no pod of workload ")
}

// TestAnswerWithProxies: where the proxies do something else, the answer is no bare verdict.
func TestAnswerWithProxies(t *testing.T) {
	t.Parallel()
	why := inProxies(t, newHeldProxies(), "reviews-bookinfo-cluster-1", explain.Request{})
	assert.Equal(t, []string{"Answer", "ALLOWED by the objects, PARTLY in the proxies"}, why.Page().Sections[0].Rows[0])
	titles := map[string]int{}
	for _, s := range why.Page().Sections {
		titles[s.Title] = len(s.Rows)
	}
	assert.Equal(t, 3, titles["Differences"])
	assert.Equal(t, 3, titles["Where it ends, by the proxies"])
	why.Proxies.Verdict, why.Proxies.Agrees = explain.Allowed, true
	assert.True(t, why.IsAllowed())
	assert.Equal(t, "ALLOWED", why.Page().Sections[0].Rows[0][1])
	why.Verdict = explain.Unknown
	assert.True(t, why.IsAllowed(), "the proxies know")
	assert.Equal(t, "UNKNOWN by the objects, ALLOWED in the proxies", why.Page().Sections[0].Rows[0][1])
	why.Proxies = nil
	assert.False(t, why.IsAllowed())
}
