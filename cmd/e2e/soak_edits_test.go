package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/kube"
)

// editor is a user who creates, changes and deletes objects all the time.
type editor struct {
	s       *soak
	random  *rand.Rand
	clients map[string]*kube.Client
	// mu is held during an edit, so that others may keep edits away.
	mu sync.Mutex
	// away are kinds that are not edited for now.
	away map[schema.GroupVersionResource]bool
}

// pace is the time between two edits.
const pace = 100 * time.Millisecond

func newEditor(s *soak) *editor {
	e := &editor{s: s, random: rand.New(rand.NewPCG(s.limits.seed, 1)), clients: map[string]*kube.Client{}, away: map[schema.GroupVersionResource]bool{}}
	for name := range s.clients {
		e.clients[name] = s.limited(name)
	}
	return e
}

// run edits until the context ends.
func (e *editor) run(ctx context.Context) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		err := e.edit(ctx, e.draw())
		e.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.s.tally.count("edits that no API server took")
		default:
			e.s.tally.count("edits")
		}
	}
}

// leave keeps edits of a kind away, or lets them pass again.
func (e *editor) leave(kind schema.GroupVersionResource, away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away[kind] = away
}

// change is one edit: an object as it is to be, or its deletion if manifest is empty.
type change struct {
	cluster, namespace, name string
	kind                     schema.GroupVersionResource
	manifest                 string
}

func (e *editor) edit(ctx context.Context, c change) error {
	if e.away[c.kind] {
		return nil
	}
	client := e.clients[c.cluster]
	if c.manifest == "" {
		return client.Delete(ctx, c.kind, c.namespace, c.name)
	}
	return client.ApplyYAML(ctx, []byte(c.manifest))
}

var virtualDestinations = schema.GroupVersionResource{Group: "networking.enterprise.mesh.gloo.solo.io", Version: "v1beta1", Resource: "virtualdestinations"}

// draw chooses an edit. Nothing of what stands throughout the run follows from one.
func (e *editor) draw() change {
	deleted := e.random.IntN(3) == 0
	var c change
	switch n := e.random.IntN(10); {
	case n < 5:
		c = change{cluster: "cluster-1", namespace: mgmt, kind: kube.Policies("trafficpolicies")}
		c.name = fmt.Sprintf("soak-%d", e.random.IntN(12))
		c.manifest = e.trafficPolicy(c.name)
	case n < 7:
		c = change{cluster: "cluster-1", namespace: mgmt, kind: kube.Policies("accesspolicies")}
		c.name = fmt.Sprintf("soak-%d", e.random.IntN(4))
		c.manifest = e.accessPolicy(c.name)
	case n < 8:
		c = change{cluster: "cluster-1", namespace: mgmt, kind: virtualDestinations}
		c.name = fmt.Sprintf("soak-%d", e.random.IntN(3))
		c.manifest = e.virtualDestination(c.name)
	case n < 9:
		c = change{cluster: e.oneOf("cluster-1", "cluster-2"), namespace: "bookinfo", kind: kube.Services()}
		c.name = fmt.Sprintf("soak-%d", e.random.IntN(4))
		c.manifest = e.service(c.name)
	default:
		c = change{cluster: e.oneOf("cluster-1", "cluster-2"), namespace: "bookinfo", kind: kube.Networking("serviceentries")}
		c.name = fmt.Sprintf("soak-%d", e.random.IntN(2))
		c.manifest = e.serviceEntry(c.name)
	}
	if deleted {
		c.manifest = ""
	}
	return c
}

func (e *editor) oneOf(words ...string) string { return words[e.random.IntN(len(words))] }

func (e *editor) trafficPolicy(name string) string {
	target := e.oneOf(
		"{name: details, namespace: bookinfo, clusterName: cluster-1}", "{name: productpage, namespace: bookinfo, clusterName: cluster-1}",
		"{name: reviews, namespace: bookinfo, clusterName: cluster-1}", "{name: reviews, namespace: bookinfo, clusterName: cluster-2}",
		"{name: soak-1, namespace: bookinfo, clusterName: cluster-2}")
	policy := e.oneOf(
		fmt.Sprintf("requestTimeout: %ds", 1+e.random.IntN(50)),
		fmt.Sprintf("retries: {attempts: %d, perTryTimeout: 2s}", 1+e.random.IntN(5)),
		fmt.Sprintf("faultInjection: {percentage: %d, fixedDelay: 1s}", 1+e.random.IntN(99)),
		fmt.Sprintf("headerManipulation: {appendResponseHeaders: {soak: \"%d\"}}", e.random.IntN(1000)),
		fmt.Sprintf("outlierDetection: {consecutiveErrors: %d}", 1+e.random.IntN(9)),
		fmt.Sprintf("trafficShift: {destinations: [{kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-2, subset: {version: v%d}}, weight: 100}]}", 1+e.random.IntN(3)))
	return fmt.Sprintf(`apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: %s, namespace: gloo-mesh}
spec: {destinationSelector: [{kubeServiceRefs: {services: [%s]}}], policy: {%s}}
`, name, target, policy)
}

// accessPolicy is about details and services of the run: all others' policies stand.
func (e *editor) accessPolicy(name string) string {
	return fmt.Sprintf(`apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: %s, namespace: gloo-mesh}
spec:
  sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-%s, namespace: bookinfo, clusterName: cluster-1}]}}]
  destinationSelector: [{kubeServiceMatcher: {labels: {%s}}}]
  allowedMethods: [%s]
`, name, e.oneOf("productpage", "reviews", "ratings"), e.oneOf("app: details", "app: soak"), e.oneOf("GET", "POST", "GET, POST"))
}

func (e *editor) virtualDestination(name string) string {
	return fmt.Sprintf(`apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: VirtualDestination
metadata: {name: %[1]s, namespace: gloo-mesh}
spec:
  hostname: %[1]s.soak.global
  port: {number: %[2]d, protocol: http}
  virtualMesh: {name: virtual-mesh, namespace: gloo-mesh}
  static: {destinations: [{kubeService: {name: reviews, namespace: bookinfo, clusterName: %[3]s}}]}
`, name, 9080+e.random.IntN(3), e.oneOf("cluster-1", "cluster-2"))
}

func (e *editor) service(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %s, namespace: bookinfo, labels: {app: soak, tier: t%d}}
spec: {selector: {app: soak}, ports: [{name: http, port: %d}]}
`, name, e.random.IntN(3), 8080+e.random.IntN(2))
}

// serviceEntry is a hand-written one of somebody who edits it.
func (e *editor) serviceEntry(name string) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: bookinfo, labels: {tier: t%[2]d}}
spec: {hosts: [%[1]s.soak.example], location: MESH_EXTERNAL, resolution: DNS, ports: [{name: http, number: 80, protocol: HTTP}]}
`, name, e.random.IntN(3))
}
