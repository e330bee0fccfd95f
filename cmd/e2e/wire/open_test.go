package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// den has services with pods of all kinds, and street has a pod that no mesh knows.
	den, street = "den", "street"
	openRounds  = 20
)

// The ports of the pods: one with requests, and one with connections.
const (
	requestsPort    = 9080
	connectionsPort = 9000
)

// denPods are the workloads of the den: with a proxy, with one that connections pass by, and without a proxy.
const denPods = `apiVersion: v1
kind: Namespace
metadata: {name: den, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: street}
---
` + denOf + `metadata: {name: whole, namespace: den}
spec:
  selector: {matchLabels: {app: whole}}
  template:
    metadata: {labels: {app: whole, all: "yes", proxied: "yes"}}
` + denSpec + denOf + `metadata: {name: holed, namespace: den}
spec:
  selector: {matchLabels: {app: holed}}
  template:
    metadata:
      labels: {app: holed, all: "yes", proxied: "yes", odd: "yes"}
      annotations: {traffic.sidecar.istio.io/excludeInboundPorts: "9000"}
` + denSpec + denOf + `metadata: {name: bare, namespace: den}
spec:
  selector: {matchLabels: {app: bare}}
  template:
    metadata:
      labels: {app: bare, all: "yes", odd: "yes", sidecar.istio.io/inject: "false"}
      annotations: {demo.meshctl.io/runs: application}
` + denSpec + denOf + `metadata: {name: stranger, namespace: street}
spec:
  selector: {matchLabels: {app: stranger}}
  template:
    metadata:
      labels: {app: stranger}
      annotations: {demo.meshctl.io/runs: application}
` + denSpec

const denOf = `apiVersion: apps/v1
kind: Deployment
`

const denSpec = `    spec:
      containers:
      - name: app
        image: docker.io/istio/examples-bookinfo-ratings-v1:1.20.3
        ports: [{name: http, containerPort: 9080}, {name: tcp, containerPort: 9000}]
---
`

// openings compares what `meshctl simulate` lists as open with what each pod of the den answers to somebody without an identity, under
// random policies of ours and of users: nothing is open that is not listed, and nothing is listed as known that is not.
func openings(t *testing.T, e *environment) {
	t.Helper()
	o := &openWorld{environment: e, random: rand.New(rand.NewPCG(waittest.Seed(t), 2)), counts: map[string]int{}}
	o.begin(t)
	for _, access := range []string{"ENABLED", "DISABLED"} {
		o.apply(t, globally(access))
		for range openRounds / 2 {
			o.next(t)
		}
	}
	t.Logf("ports of services: %v", o.counts)
	for _, what := range []string{openListed, openNowhere} {
		assert.Greater(t, o.counts[what], openRounds/2, what)
	}
	assert.Greater(t, o.counts[openNoMesh], openRounds/10, openNoMesh)
}

// What is counted of the ports of services.
const (
	openListed  = "open, and listed"
	openNowhere = "closed"
	openUnknown = "not known"
	openNoMesh  = "in no mesh, and listed"
	openWrong   = "wrong"
)

type openWorld struct {
	*environment
	random *rand.Rand
	round  int
	// pods are those of the den by workload.
	pods     map[string]proxies.Pod
	stranger proxies.Pod
	// services are the pods of each service, by workload.
	services map[string][]string
	// byHand are the objects of users of this round, and policies are ours.
	byHand, policies string
	counts           map[string]int
}

// begin starts the pods; they end with the test.
func (o *openWorld) begin(t *testing.T) {
	t.Helper()
	apply(t, o.clusters["cluster-1"], denPods)
	t.Cleanup(func() {
		o.write(t, "", "")
		o.apply(t, globally("ENABLED"))
		for _, namespace := range []string{den, street} {
			assert.NoError(t, o.management.Delete(context.Background(), schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", namespace))
		}
		waittest.NoError(t, "the pods of the den are gone", func() error {
			all, err := o.environment.pods(context.Background())
			for _, p := range all {
				if p.Namespace == den || p.Namespace == street {
					return fmt.Errorf("pod %s", p.Pod)
				}
			}
			return err
		})
	})
	waittest.NoError(t, "the pods of the den run", func() error {
		all, err := o.environment.pods(t.Context())
		o.pods = map[string]proxies.Pod{}
		for _, p := range all {
			switch {
			case !p.Ready:
			case p.Namespace == den:
				o.pods[p.Workload] = p
			case p.Namespace == street:
				o.stranger = p
			}
		}
		if err == nil && (len(o.pods) != 3 || o.stranger.Pod == "") {
			err = fmt.Errorf("there are %v", slices.Sorted(maps.Keys(o.pods)))
		}
		return err
	})
}

// next draws other services and policies, and compares.
func (o *openWorld) next(t *testing.T) {
	t.Helper()
	o.round++
	byHand, policies := o.drawServices()+o.drawByHand(), o.drawPolicies()
	o.write(t, byHand, policies)
	defer func() {
		if t.Failed() {
			t.Log(byHand, policies)
		}
	}()
	found := o.compare(t)
	// What was open before may be so until connections are drained.
	for begin := time.Now(); slices.ContainsFunc(found, func(f finding) bool { return f.what == openWrong }) && time.Since(begin) < drained; {
		found = o.compare(t)
	}
	for _, f := range found {
		o.counts[f.what]++
		if f.what == openWrong {
			t.Errorf("round %d: %s", o.round, f.text)
		}
	}
}

// finding is what was found of a port of a service.
type finding struct{ what, text string }

// compare asks each pod behind each port of each service.
func (o *openWorld) compare(t *testing.T) (found []finding) {
	t.Helper()
	listed := o.simulate(t)
	for _, service := range slices.Sorted(maps.Keys(o.services)) {
		name := service + "-" + den + "-cluster-1"
		for _, port := range []uint32{requestsPort, connectionsPort} {
			var in []string
			for _, workload := range o.services[service] {
				if o.letsIn(t, o.pods[workload], port) {
					in = append(in, workload)
				}
			}
			said := slices.DeleteFunc(slices.Clone(listed.Openings), func(x explain.Opening) bool {
				return x.Service.Name != name || !slices.Contains(x.Ports, port)
			})
			known := slices.ContainsFunc(said, func(x explain.Opening) bool { return x.Known })
			f := finding{text: fmt.Sprintf("port %d of %s is open at %v, and listed as %+v", port, service, in, said)}
			switch {
			case slices.ContainsFunc(listed.InNoMesh, func(ref snapshot.Ref) bool {
				return ref.Cluster == "cluster-1" && ref.Namespace == den && ref.Name == service
			}):
				f.what = openNoMesh
				if len(in) == 0 {
					f.what = openWrong
				}
			case len(in) > 0 && len(said) == 0, len(in) == 0 && known:
				f.what = openWrong
			case len(said) > 0 && !known:
				f.what = openUnknown
			case len(in) > 0:
				f.what = openListed
			default:
				f.what = openNowhere
			}
			found = append(found, f)
		}
	}
	return found
}

// simulate runs the command.
func (o *openWorld) simulate(t *testing.T) *explain.Exposure {
	t.Helper()
	command := exec.CommandContext(t.Context(), o.options.Meshctl, "simulate", "-o", "json", "--kubeconfig", o.clusters["cluster-1"].Kubeconfig())
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	require.NoError(t, command.Run(), errs.String())
	exposure := &explain.Exposure{}
	require.NoError(t, json.Unmarshal(out.Bytes(), exposure))
	return exposure
}

// letsIn reports whether a pod answers any of the stranger's requests, or connections, to a port.
func (o *openWorld) letsIn(t *testing.T, pod proxies.Pod, port uint32) bool {
	t.Helper()
	calls := []app.Call{{URL: fmt.Sprintf("tcp://%s:%d", pod.IP, port)}}
	if port == requestsPort {
		calls = requests(fmt.Sprintf("http://%s:%d", pod.IP, port))
	}
	for _, call := range calls {
		call.Count, call.Fresh, call.TimeoutMs = 1, true, 3000
		got, err := o.send(t.Context(), o.stranger, call)
		require.NoError(t, err)
		if len(got.failed()) == 0 {
			return true
		}
	}
	return false
}

// requests are the different ones that policies of the den tell apart.
func requests(server string) (calls []app.Call) {
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/", "/a", "/a/b.json", "/b"} {
			calls = append(calls, app.Call{URL: server + path, Method: method})
		}
	}
	return calls
}

// write replaces the objects of the round before, and waits until the proxies have the new ones: what tells it is written last.
func (o *openWorld) write(t *testing.T, byHand, policies string) {
	t.Helper()
	for _, before := range []string{o.policies, o.byHand} {
		if before != "" {
			o.remove(t, before)
		}
	}
	o.byHand, o.policies = byHand, policies
	if byHand == "" {
		return
	}
	o.apply(t, byHand)
	o.apply(t, policies)
	for i := range strings.Count(policies, "kind: AccessPolicy") {
		waittest.NoError(t, "the policies are processed", func() error { return o.processed(t.Context(), "accesspolicies", fmt.Sprintf("den-%d", i)) })
	}
	path := fmt.Sprintf("/round-%d-", o.round)
	told := "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: told, namespace: den}\nspec: {action: DENY, rules: [{to: [{operation: {ports: ['9080'], paths: [" + path + "]}}]}]}\n"
	o.apply(t, told)
	o.byHand += told
	for _, workload := range []string{"whole", "holed"} {
		waittest.NoError(t, "the proxies have what was written", func() error { return o.hasRule(t.Context(), o.pods[workload], path) })
	}
}

// drawServices draws which pods are behind which services.
func (o *openWorld) drawServices() string {
	o.services = map[string][]string{}
	of := map[string][]string{
		`{app: whole}`: {"whole"}, `{app: holed}`: {"holed"}, `{app: bare}`: {"bare"}, `{all: "yes"}`: {"whole", "holed", "bare"},
		`{proxied: "yes"}`: {"whole", "holed"}, `{odd: "yes"}`: {"holed", "bare"},
	}
	var out strings.Builder
	for _, name := range []string{"ale", "beer", "cider", "mead"} {
		selector := o.draw(slices.Sorted(maps.Keys(of))...)
		o.services[name] = of[selector]
		headless := o.some(0.2, "clusterIP: None, ")
		fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: den}\nspec: {%sselector: %s, ports: [{name: %s, port: 9080}, {name: tcp, port: 9000}]}\n",
			name, headless, selector, o.draw("http", "http-web", "web"))
	}
	return out.String()
}

// drawByHand draws what users write for Istio.
func (o *openWorld) drawByHand() string {
	var out strings.Builder
	selector := func() string {
		return o.draw("", `selector: {matchLabels: {app: whole}}, `, `selector: {matchLabels: {proxied: "yes"}}, `, `selector: {matchLabels: {odd: "yes"}}, `)
	}
	for i := range o.random.IntN(3) {
		rule := o.draw("{}", "{to: [{operation: {ports: ['9080']}}]}", "{to: [{operation: {ports: ['9000']}}]}", "{to: [{operation: {methods: [GET], paths: ['/a*']}}]}",
			"{from: [{source: {principals: ['*']}}]}", "{from: [{source: {notPrincipals: ['*']}}]}", "{from: [{source: {namespaces: [bookinfo]}}]}", "{from: [{source: {notNamespaces: [bookinfo]}}]}")
		fmt.Fprintf(&out, "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: by-hand-%d, namespace: den}\nspec: {%saction: %s, rules: [%s]}\n",
			i, selector(), o.draw("ALLOW", "ALLOW", "DENY"), rule)
	}
	for i := range o.random.IntN(3) {
		chosen := selector()
		ports := ""
		if chosen != "" {
			ports = o.some(0.4, ", portLevelMtls: {"+o.draw("9080", "9000")+": {mode: "+o.draw("STRICT", "DISABLE", "PERMISSIVE")+"}}")
		}
		fmt.Fprintf(&out, "---\napiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: by-hand-%d, namespace: den}\nspec: {%smtls: {mode: %s}%s}\n",
			i, chosen, o.draw("STRICT", "PERMISSIVE", "DISABLE"), ports)
	}
	return out.String()
}

// drawPolicies draws AccessPolicies on the den, or none: one may be for all of it.
func (o *openWorld) drawPolicies() string {
	var out strings.Builder
	wide := o.random.IntN(2) == 0
	for i := range o.random.IntN(4) {
		on := "{kubeServiceMatcher: {namespaces: [den]}}"
		if i > 0 || !wide {
			on = "{kubeServiceRefs: {services: [{name: " + o.draw("ale", "beer", "cider", "mead") + ", namespace: den, clusterName: cluster-1}]}}"
		}
		from := o.draw("", "sourceSelector: [{kubeIdentityMatcher: {namespaces: [bookinfo]}}], ", "sourceSelector: [{kubeIdentityMatcher: {namespaces: [nowhere]}}], ",
			"sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-productpage, namespace: bookinfo, clusterName: cluster-1}]}}], ")
		what := o.draw("", "", ", allowedMethods: [GET]", ", allowedPaths: [/a/*]", ", allowedPorts: [9000]", ", allowedPorts: [9080]")
		out.WriteString(policyDocument("AccessPolicy", fmt.Sprintf("den-%d", i), from+"destinationSelector: ["+on+"]"+what))
	}
	return out.String()
}

func (o *openWorld) draw(list ...string) string { return list[o.random.IntN(len(list))] }

// some is a text with a probability, or else empty.
func (o *openWorld) some(probability float64, text string) string {
	if o.random.Float64() < probability {
		return text
	}
	return ""
}
