package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/cmd/schematest"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
)

const mgmt = "gloo-mesh"

// agents is the namespace of the accounts that a registration has on a cluster: cluster-1 is the management cluster, and
// in its management plane's namespace they have no rights.
func agents(cluster string) string {
	if cluster == "cluster-1" {
		return mgmt + "-agent"
	}
	return mgmt
}

func core(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: plural}
}

func registered() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "multicluster.solo.io", Version: "v1alpha1", Resource: "kubernetesclusters"}
}

// shifted are the weighted targets of the demo's TrafficPolicy.
var shifted = []string{
	"reviews.bookinfo.svc.cluster-2.global/version-v3=75",
	"reviews.bookinfo.svc.cluster.local/version-v1=15",
	"reviews.bookinfo.svc.cluster.local/version-v2=10",
}

// envoyFilters: this is their latest version.
var envoyFilters = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1alpha3", Resource: "envoyfilters"}

// limit needs a filter that sidecars do not have by default.
const limit = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: reviews-limit, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: reviews, namespace: bookinfo, clusterName: cluster-2}]
  policy:
    rateLimit: {basic: {anonymousLimits: {unit: SECOND, requestsPerUnit: 1000}}}
`

// TestMainJob covers two clusters from registration to deregistration, with what
// can go wrong in between.
func TestMainJob(t *testing.T) {
	w := newEnvironment(t, withBookinfo)
	w.registers()
	w.startServe()
	w.translates()
	w.describes()
	w.edits()
	w.reportsProblems()
	w.resistsTenant()
	w.reportsCeasedPolicy()
	w.updatesDashboard()
	w.freezes()
	w.stillReportsCeasedPolicy()
	w.renewsCredentials()
	w.usesAllPermissions()
	w.deregisters()
	w.serveUsesAllPermissions()
	w.stopServe()
}

// registers: a second registration replaces the credential.
func (w *environment) registers() {
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	secret, err := w.object("cluster-1", core("secrets"), mgmt, "cluster-2")
	require.NoError(w.t, err)
	assert.Equal(w.t, "solo.io/kubeconfig", secret.Object["type"])
	_, err = w.object("cluster-2", core("serviceaccounts"), agents("cluster-2"), "cluster-2")
	require.NoError(w.t, err)
	r := w.must("cluster", "register", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1")
	assert.Contains(w.t, r.stderr, "the credentials of before are revoked")
	again, err := w.object("cluster-1", core("secrets"), mgmt, "cluster-2")
	require.NoError(w.t, err)
	assert.NotEqual(w.t, secret.Object["data"], again.Object["data"])
	_, err = w.object("cluster-2", core("serviceaccounts"), agents("cluster-2"), "cluster-2")
	assert.True(w.t, apierrors.IsNotFound(err), "API servers refuse all tokens of an account that is gone: %v", err)
}

// translates: both clusters have the objects of the policies, and istiod accepts
// them.
func (w *environment) translates() {
	w.until("destinations are discovered", func(context.Context) error {
		if n := len(w.names("cluster-1", kube.Discovery("destinations"))); n < 6 {
			return fmt.Errorf("%d destinations", n)
		}
		return nil
	})
	w.apply("cluster-1", manifests.VirtualMesh())
	w.apply("cluster-1", manifests.Policies())
	w.apply("cluster-1", []byte(limit))
	w.awaitRoutes(shifted)
	w.awaitState("trafficpolicies", "reviews-shift", "ACCEPTED")
	w.awaitState("accesspolicies", "reviews", "ACCEPTED")
	w.awaitVirtualMesh()

	for _, want := range []struct {
		cluster         string
		kind            schema.GroupVersionResource
		namespace, name string
	}{
		{"cluster-1", kube.Networking("serviceentries"), "istio-system", "reviews.bookinfo.svc.cluster-2.global"},
		{"cluster-2", kube.Networking("serviceentries"), "istio-system", "reviews.bookinfo.svc.cluster-2.global"},
		{"cluster-2", kube.Networking("serviceentries"), "istio-system", "productpage.bookinfo.svc.cluster-1.global"},
		{"cluster-1", kube.Networking("destinationrules"), "istio-system", "reviews-bookinfo-cluster-2"},
		{"cluster-1", kube.Networking("destinationrules"), "bookinfo", "reviews"},
		{"cluster-1", kube.Networking("gateways"), "istio-system", "istio-eastwestgateway-istio-system-cluster-1-gloo-mesh"},
		{"cluster-1", kube.Security("authorizationpolicies"), "istio-system", "global-access-control"},
		{"cluster-2", envoyFilters, "istio-system", "meshctl-filters"},
		{"cluster-2", envoyFilters, "istio-system", "reviews-bookinfo-cluster-2"},
		{"cluster-2", kube.Security("authorizationpolicies"), "bookinfo", "reviews"},
	} {
		w.until(want.cluster+" has "+want.name, func(context.Context) error {
			_, err := w.object(want.cluster, want.kind, want.namespace, want.name)
			return err
		})
	}
}

func (w *environment) awaitRoutes(want []string) {
	w.t.Helper()
	w.until("the VirtualService has the routes", func(context.Context) error {
		vs, err := w.object("cluster-1", kube.Networking("virtualservices"), "bookinfo", "reviews")
		if err != nil {
			return err
		}
		if got := routes(vs); !slices.Equal(got, want) {
			return fmt.Errorf("expected routes %[2]v, got %[1]v", got, want)
		}
		return nil
	})
}

func (w *environment) awaitState(kind, name, state string) {
	w.t.Helper()
	w.awaitStateOf(kube.Policies(kind), name, state)
}

func (w *environment) awaitStateOf(kind schema.GroupVersionResource, name, state string) {
	w.t.Helper()
	w.until(name+" is "+state, func(context.Context) error {
		o, err := w.object("cluster-1", kind, mgmt, name)
		if err != nil {
			return err
		}
		if field(o, "status", "state") != state || field(o, "status", "observedGeneration") != o.GetGeneration() {
			return fmt.Errorf("its status is %v", o.Object["status"])
		}
		return nil
	})
}

// describes: `describe destination`, as text and as JSON.
func (w *environment) describes() {
	text := w.must("describe", "destination", "reviews-bookinfo-cluster-1", "--context", "cluster-1").stdout
	for _, want := range []string{
		"reviews-shift", "reviews.bookinfo.svc.cluster-2.global", "75", "cluster.local/ns/bookinfo/sa/bookinfo-productpage",
	} {
		assert.Contains(w.t, text, want)
	}
	schematest.Valid(w.t, "describe destination", w.must("describe", "destination", "reviews-bookinfo-cluster-1", "--context", "cluster-1", "-o", "json").stdout)
	schematest.Valid(w.t, "cluster list", w.must("cluster", "list", "--mgmt-context", "cluster-1", "-o", "json").stdout)
	schematest.Valid(w.t, "version", w.must("version", "--context", "cluster-1", "-o", "json").stdout)
	assert.Contains(w.t, w.must("describe", "mesh", "--context", "cluster-1").stdout, "istiod-istio-system-cluster-2")
	list := w.must("cluster", "list", "--mgmt-context", "cluster-1").stdout
	assert.Contains(w.t, list, "cluster-2")
}

// edits: a change of a policy takes effect, and so does its deletion.
func (w *environment) edits() {
	w.patchPolicy(`[{"op":"replace","path":"/spec/policy/trafficShift/destinations/0/weight","value":50},
		{"op":"replace","path":"/spec/policy/trafficShift/destinations/1/weight","value":40}]`)
	w.awaitRoutes([]string{
		"reviews.bookinfo.svc.cluster-2.global/version-v3=50",
		"reviews.bookinfo.svc.cluster.local/version-v1=40",
		"reviews.bookinfo.svc.cluster.local/version-v2=10",
	})
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "reviews-shift")
	w.until("the VirtualService is gone", func(context.Context) error {
		_, err := w.object("cluster-1", kube.Networking("virtualservices"), "bookinfo", "reviews")
		if err == nil {
			return fmt.Errorf("it still exists")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	w.until("no subset is left", func(context.Context) error {
		if rules := w.names("cluster-1", kube.Networking("destinationrules")); len(rules) > 0 {
			return fmt.Errorf("DestinationRules %v", rules)
		}
		return nil
	})
	w.apply("cluster-1", manifests.Policies())
	w.awaitRoutes(shifted)

	w.apply("cluster-1", []byte(dependency))
	w.awaitStateOf(dependencies(), "reviews-only", "ACCEPTED")
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.until("proxies in "+cluster+" know of less", func(context.Context) error {
			sidecar, err := w.object(cluster, kube.Networking("sidecars"), "bookinfo", "reviews-v1")
			if err != nil {
				return err
			}
			if text := fmt.Sprint(field(sidecar, "spec", "egress")); !strings.Contains(text, "*/reviews.bookinfo.svc.cluster.local") {
				return fmt.Errorf("egress: %s", text)
			}
			return nil
		})
	}
}

// dependencies are ServiceDependencies.
func dependencies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "networking.enterprise.mesh.gloo.solo.io", Version: "v1beta1", Resource: "servicedependencies"}
}

const dependency = `
apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: ServiceDependency
metadata: {name: reviews-only, namespace: gloo-mesh}
spec:
  sourceSelectors:
  - kubeWorkloadMatcher: {namespaces: [bookinfo]}
  destinationSelectors:
  - kubeServiceMatcher: {labels: {app: reviews}}
`

func (w *environment) patchPolicy(patch string) {
	w.t.Helper()
	_, err := w.dynamic["cluster-1"].Resource(kube.Policies("trafficpolicies")).Namespace(mgmt).
		Patch(w.t.Context(), "reviews-shift", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// reportsProblems: invalid input is reported, and does not affect other objects.
func (w *environment) reportsProblems() {
	w.apply("cluster-1", []byte(nowhere))
	w.awaitState("trafficpolicies", "nowhere", "INVALID")
	o, err := w.object("cluster-1", kube.Policies("trafficpolicies"), mgmt, "nowhere")
	require.NoError(w.t, err)
	assert.Contains(w.t, fmt.Sprint(field(o, "status", "errors")), "service nosuch.bookinfo.cluster-1 was not discovered")

	// The last accepted spec stays in force if an edit makes the policy invalid.
	w.patchPolicy(`[{"op":"replace","path":"/spec/policy/trafficShift/destinations/0/kubeService/name","value":"nosuch"}]`)
	w.awaitState("trafficpolicies", "reviews-shift", "INVALID")
	w.awaitRoutes(shifted)
	w.patchPolicy(`[{"op":"replace","path":"/spec/policy/trafficShift/destinations/0/kubeService/name","value":"reviews"}]`)
	w.awaitState("trafficpolicies", "reviews-shift", "ACCEPTED")
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "nowhere")

	// An invalid registration is an issue; other clusters are not affected.
	w.apply("cluster-1", []byte(garbage))
	w.until("the invalid registration is reported", func(context.Context) error { return w.hasIssue("garbage") })
	w.delete("cluster-1", registered(), mgmt, "garbage")
	w.delete("cluster-1", core("secrets"), mgmt, "garbage")

	// A user's object of the same name is not changed.
	w.apply("cluster-2", []byte(foreign))
	w.apply("cluster-1", []byte(onForeign))
	w.until("the foreign object is reported", func(context.Context) error { return w.hasIssue("ForeignObject") })
	vs, err := w.object("cluster-2", kube.Networking("virtualservices"), "bookinfo", "ratings")
	require.NoError(w.t, err)
	assert.Equal(w.t, []string{"ratings/=0"}, routes(vs))
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "ratings-timeout")
	w.delete("cluster-2", kube.Networking("virtualservices"), "bookinfo", "ratings")
}

// hasIssue returns an error unless an issue contains a word.
func (w *environment) hasIssue(word string) error {
	issues, err := w.inspect("/debug/snapshot?part=issues")
	if err != nil {
		return err
	}
	if !strings.Contains(issues, word) {
		return fmt.Errorf("issues: %s", issues)
	}
	return nil
}

// freezes: if a cluster cannot be read, neither its objects nor those that other
// clusters have because of it are changed, also after a restart of the management
// plane.
func (w *environment) freezes() {
	before := w.names("cluster-1", kube.Networking("serviceentries"))
	destinations := w.names("cluster-1", kube.Discovery("destinations"))
	require.NoError(w.t, w.clusters[1].Kill(w.t.Context(), local.APIServer))
	w.until("cluster-2 is frozen", func(context.Context) error { return w.hasIssue("ClusterFrozen") })

	// The other cluster is still updated.
	w.patchPolicy(`[{"op":"add","path":"/spec/policy/requestTimeout","value":"7s"}]`)
	w.awaitTimeout("7s")
	assert.ElementsMatch(w.t, before, w.names("cluster-1", kube.Networking("serviceentries")))

	w.stopServe()
	w.startServe()
	w.until("cluster-2 is the cluster is still frozen", func(context.Context) error { return w.hasIssue("ClusterFrozen") })
	w.patchPolicy(`[{"op":"replace","path":"/spec/policy/requestTimeout","value":"8s"}]`)
	w.awaitTimeout("8s")
	w.awaitRoutes(shifted)
	assert.ElementsMatch(w.t, before, w.names("cluster-1", kube.Networking("serviceentries")))
	assert.ElementsMatch(w.t, destinations, w.names("cluster-1", kube.Discovery("destinations")))
	r := w.run("cluster", "list", "--mgmt-context", "cluster-1")
	assert.Contains(w.t, r.stdout, "cluster-2")
	w.awaitsCluster()

	require.NoError(w.t, w.clusters[1].Restart(w.t.Context(), local.APIServer))
	w.until("cluster-2 has thawed", func(context.Context) error {
		if w.hasIssue("ClusterFrozen") == nil {
			return fmt.Errorf("the cluster is still frozen")
		}
		return nil
	})
	assert.ElementsMatch(w.t, destinations, w.names("cluster-1", kube.Discovery("destinations")))
	w.awaitRoutes(append([]string{toV1}, shifted[1:]...))
	w.patchPolicy(strings.ReplaceAll(shiftToV1, "v1", "v3"))
	w.awaitRoutes(shifted)
	w.awaitState("trafficpolicies", "reviews-shift", "ACCEPTED")
}

// shiftToV1 sends the requests to another subset, which gives the route toV1.
const (
	shiftToV1 = `[{"op":"replace","path":"/spec/policy/trafficShift/destinations/0/kubeService/subset/version","value":"v1"}]`
	toV1      = "reviews.bookinfo.svc.cluster-2.global/version-v1=75"
)

// awaitsCluster: a route to what the gateways of a frozen cluster do not know is not
// written before the cluster answers, and the policy says so.
func (w *environment) awaitsCluster() {
	w.patchPolicy(shiftToV1)
	w.awaitState("trafficpolicies", "reviews-shift", "FAILED")
	w.until("the policy says so", func(context.Context) error { // that the cluster is away may stand there before
		o, err := w.object("cluster-1", kube.Policies("trafficpolicies"), mgmt, "reviews-shift")
		if err != nil {
			return err
		}
		if errors := fmt.Sprint(field(o, "status", "errors")); !strings.Contains(errors, "it waits for cluster cluster-2") {
			return fmt.Errorf("%s", errors)
		}
		return nil
	})
	text := w.must("describe", "trafficpolicy", "reviews-shift", "--context", "cluster-1").stdout
	assert.Contains(w.t, text, "it waits for cluster cluster-2")
	w.awaitRoutes(shifted)
}

func (w *environment) awaitTimeout(want string) {
	w.t.Helper()
	w.until("the timeout is "+want, func(context.Context) error {
		vs, err := w.object("cluster-1", kube.Networking("virtualservices"), "bookinfo", "reviews")
		if err != nil {
			return err
		}
		if text := fmt.Sprint(field(vs, "spec", "http")); !strings.Contains(text, "timeout:"+want) {
			return fmt.Errorf("http: %s", text)
		}
		return nil
	})
}

const nowhere = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: nowhere, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: nosuch, namespace: bookinfo, clusterName: cluster-1}]
  policy: {requestTimeout: 1s}
`

const garbage = `
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: garbage, namespace: gloo-mesh}
spec: {secretName: garbage}
---
apiVersion: v1
kind: Secret
metadata: {name: garbage, namespace: gloo-mesh}
type: solo.io/kubeconfig
stringData: {kubeconfig: "{[this is no kubeconfig"}
`

const foreign = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ratings, namespace: bookinfo}
spec:
  hosts: [ratings]
  http: [{route: [{destination: {host: ratings}}]}]
`

const onForeign = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: ratings-timeout, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: ratings, namespace: bookinfo, clusterName: cluster-2}]
  policy: {requestTimeout: 1s}
`
