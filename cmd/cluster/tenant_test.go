package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// tenant is a user who may do everything in namespace bookinfo of a cluster, and nothing elsewhere.
type tenant struct {
	w       *tenantWorld
	t       *testing.T
	cluster string
	// as is the user's client, and patch one that patches statuses.
	as    *kube.Client
	patch dynamic.Interface
	// own and far replace names of clusters.
	names *strings.Replacer
	// edits counts edits of the policy that shows that serve has done what came before.
	edits int
}

func (w *tenantWorld) tenant(t *testing.T, cluster, far string) *tenant {
	t.Helper()
	config := rest.CopyConfig(w.configs[cluster])
	config.Impersonate = rest.ImpersonationConfig{UserName: "tina", Groups: []string{"system:authenticated"}}
	patch, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return &tenant{w: w, t: t, cluster: cluster, as: w.as(cluster, "tina"), patch: patch, names: strings.NewReplacer("OWN", cluster, "FAR", far)}
}

// object is a policy of the tenant.
func (u *tenant) object(kind, name, spec, metadata string) *unstructured.Unstructured {
	u.t.Helper()
	text := u.names.Replace(kind + "metadata: {name: " + name + ", namespace: " + team + metadata + "}\nspec: " + spec + "\n")
	object := &unstructured.Unstructured{}
	require.NoError(u.t, yaml.Unmarshal([]byte(text), &object.Object), text)
	return object
}

func kindOf(t *testing.T, o *unstructured.Unstructured) snapshot.Kind {
	t.Helper()
	k, ok := snapshot.KindOf(o.GroupVersionKind().GroupKind())
	require.True(t, ok, o.GetKind())
	return k
}

// write applies a policy, waits until serve has said what became of it, and returns its state and its status.
func (u *tenant) write(o *unstructured.Unstructured) (state, status string) {
	u.t.Helper()
	require.NoError(u.t, u.as.Apply(u.t.Context(), o), "%s %s", o.GetKind(), o.GetName())
	return u.answered(o)
}

// answered waits until the status of a policy is about its present spec.
func (u *tenant) answered(o *unstructured.Unstructured) (state, status string) {
	u.t.Helper()
	k := kindOf(u.t, o)
	waittest.NoError(u.t, fmt.Sprintf("serve says what became of %s %s", o.GetKind(), o.GetName()), func() error {
		is, err := u.as.Get(u.t.Context(), k.GroupVersionResource(), team, o.GetName())
		if err != nil {
			return err
		}
		raw, err := json.Marshal(is.Object["status"])
		observed, _, _ := unstructured.NestedInt64(is.Object, "status", "observedGeneration")
		if err == nil && observed != is.GetGeneration() {
			err = fmt.Errorf("its status is %s", raw)
		}
		state, _, _ = unstructured.NestedString(is.Object, "status", "state")
		status = string(raw)
		return err
	})
	return state, status
}

func (u *tenant) remove(o *unstructured.Unstructured) {
	u.t.Helper()
	k := kindOf(u.t, o)
	if len(o.GetFinalizers()) > 0 {
		_, err := u.patch.Resource(k.GroupVersionResource()).Namespace(team).Patch(u.t.Context(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(u.t, err)
		}
	}
	require.NoError(u.t, u.as.Delete(u.t.Context(), k.GroupVersionResource(), team, o.GetName()))
}

// inside is the spec of an object of Istio in the tenant's namespace as text, with its UID; empty if there is none.
func (u *tenant) inside(k snapshot.Kind, name string) (string, types.UID) {
	u.t.Helper()
	o, err := u.w.clients[u.cluster].Get(u.t.Context(), k.GroupVersionResource(), team, name)
	if apierrors.IsNotFound(err) {
		return "", ""
	}
	require.NoError(u.t, err)
	raw, err := json.Marshal(o.Object["spec"])
	require.NoError(u.t, err)
	return string(raw), o.GetUID()
}

// has waits until an object in the tenant's namespace contains a text.
func (u *tenant) has(k snapshot.Kind, name, text string) {
	u.t.Helper()
	waittest.NoError(u.t, fmt.Sprintf("%s %s of %s has %s", k, name, u.cluster, text), func() error {
		if is, _ := u.inside(k, name); !strings.Contains(is, text) {
			return fmt.Errorf("it is %q", is)
		}
		return nil
	})
}

// settle edits a policy, and waits until the edit is in force: then all that was written before it is.
func (u *tenant) settle() {
	u.t.Helper()
	u.edits++
	timeout := fmt.Sprintf("%ds", 20+u.edits)
	require.NoError(u.t, u.as.Apply(u.t.Context(), u.object(trafficKind, "canary",
		`{destinationSelector: [{kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: OWN}]}}], policy: {requestTimeout: `+timeout+`}}`, "")))
	u.has(snapshot.VirtualService, "details", `"timeout":"`+timeout+`"`)
}

// forOthers are the routes to the services of the tenant, but for those about which the management cluster says something, that callers
// of other namespaces take and that do something to their requests; and the hosts of the tenant that they know.
func (u *tenant) forOthers() (out []string) {
	u.t.Helper()
	items, err := u.w.clients[u.cluster].List(u.t.Context(), snapshot.VirtualService.GroupVersionResource(), team)
	require.NoError(u.t, err)
	require.NotEmpty(u.t, items, "there is the one of the canary")
	for i := range items {
		routes, _, _ := unstructured.NestedSlice(items[i].Object, "spec", "http")
		for _, route := range routes {
			r, _ := route.(map[string]any)
			matches, _ := r["match"].([]any)
			own := len(matches) > 0 && !slices.ContainsFunc(matches, func(m any) bool {
				is, _ := m.(map[string]any)
				return is["sourceNamespace"] != team
			})
			for field := range r {
				if !own && items[i].GetName() != "reviews" && field != "route" && field != "match" && field != "name" {
					out = append(out, items[i].GetName()+": "+field)
				}
			}
		}
	}
	entries, err := u.w.clients[u.cluster].List(u.t.Context(), snapshot.ServiceEntry.GroupVersionResource(), team)
	require.NoError(u.t, err)
	for i := range entries {
		if to, _, _ := unstructured.NestedStringSlice(entries[i].Object, "spec", "exportTo"); !slices.Equal(to, []string{team}) {
			out = append(out, entries[i].GetName()+": exportTo")
		}
	}
	return out
}

// works has the tenant write policies that get in force and have a status, and one that loses against the management cluster.
func (u *tenant) works(seconds int) {
	t := u.t
	t.Helper()
	to := `destinationSelector: [{kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: OWN}]}}]`
	state, status := u.write(u.object(trafficKind, "ratings", fmt.Sprintf(`{%s, policy: {requestTimeout: %ds}}`, to, seconds), ""))
	assert.Equal(t, "ACCEPTED", state, status)
	assert.Contains(t, status, `"ratings-bookinfo-`+u.cluster+`.gloo-mesh.`)
	u.has(snapshot.VirtualService, "ratings", fmt.Sprintf(`"timeout":"%ds"`, seconds))
	state, status = u.write(u.object(dependencyKind, "reviews", `{sourceSelectors: [{kubeWorkloadMatcher: {labels: {app: reviews}}}], destinationSelectors: [{kubeServiceMatcher: {namespaces: [bookinfo]}}]}`, ""))
	assert.Equal(t, "ACCEPTED", state, status)
	u.has(snapshot.Sidecar, "reviews-v1", "ratings.bookinfo.svc.cluster.local")
	state, status = u.write(u.object(accessKind, "ratings", `{sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: OWN}]}}], `+to+`}`, ""))
	assert.Equal(t, "ACCEPTED", state, status)
	u.has(snapshot.AuthorizationPolicy, "ratings", "bookinfo-reviews")

	// What is in force on a service is listed with its origin.
	waittest.NoError(t, "the origin of the policies is told", func() error {
		client := u.w.clients["cluster-1"]
		d, err := client.Get(t.Context(), snapshot.Destination.GroupVersionResource(), "gloo-mesh", "ratings-bookinfo-"+u.cluster)
		if err != nil {
			return err
		}
		for _, list := range []string{"appliedTrafficPolicies", "appliedAccessPolicies"} {
			applied, _, _ := unstructured.NestedSlice(d.Object, "status", list)
			if len(applied) != 1 {
				return fmt.Errorf("%s are %v", list, applied)
			}
			one, _ := applied[0].(map[string]any)
			if ref := fmt.Sprint(one["clusterName"], one["ref"]); ref != u.cluster+"map[name:ratings namespace:bookinfo]" {
				return fmt.Errorf("%s are of %s", list, ref)
			}
		}
		return nil
	})
}

// attempt is a policy that is to reach outside.
type attempt struct {
	way
	object *unstructured.Unstructured
}

// try has the tenant write some policies, and compares what is outside of the namespace with what was there before.
func (u *tenant) try(before map[string]string, batch []attempt) {
	t := u.t
	t.Helper()
	about := batch[0].name
	var written []attempt
	for _, a := range batch {
		err := u.as.Apply(t.Context(), a.object)
		if a.rejected {
			assert.True(t, apierrors.IsInvalid(err), "%s: %v", a.name, err)
		} else if assert.NoError(t, err, a.name) {
			written = append(written, a)
		}
	}
	u.settle()
	assert.Equal(t, before, u.w.written(u.cluster), about)
	assert.Empty(t, u.forOthers(), about)
	for _, a := range written {
		_, status := u.answered(a.object)
		assert.Contains(t, status, u.names.Replace(a.says), a.name)
		u.remove(a.object)
	}
}

// tries has the tenant try to reach outside of the namespace in each way, so many at once: nothing outside is written.
func (u *tenant) tries(atOnce int) {
	t := u.t
	t.Helper()
	u.settle()
	all, before := u.w.outside(u.cluster), u.w.written(u.cluster)
	for _, object := range []string{u.cluster + " VirtualService other/ratings", u.cluster + " AuthorizationPolicy other/ratings", "cluster-1 " + federated(u.cluster)} {
		require.Contains(t, before, object)
	}
	var tried []attempt
	for _, list := range []struct {
		kind string
		ways []way
	}{{trafficKind, trafficWays}, {accessKind, accessWays}, {virtualKind, virtualWays}, {dependencyKind, dependencyWays}} {
		for _, way := range list.ways {
			tried = append(tried, attempt{way, u.object(list.kind, fmt.Sprintf("way-out-%d", len(tried)), way.spec, "")})
		}
	}
	everything := trafficWays[len(trafficWays)-1]
	for _, way := range metadataWays {
		tried = append(tried, attempt{way, u.object(trafficKind, fmt.Sprintf("way-out-%d", len(tried)), everything.spec, way.metadata)})
	}
	for _, name := range names {
		tried = append(tried, attempt{way{name: name}, u.object(trafficKind, name, everything.spec, "")})
	}
	require.Greater(t, len(tried), 50)
	for batch := range slices.Chunk(tried, atOnce) {
		u.try(before, batch)
	}
	u.writesStatus(before)
	u.isForbidden()
	u.settle()
	assert.Equal(t, before, u.w.written(u.cluster))
	after := u.w.outside(u.cluster)
	for name, text := range all {
		assert.Equal(t, text, after[name], name)
	}
	assert.Len(t, after, len(all))
}

// writesStatus has the tenant write a status by hand: serve believes none of it, and writes its own over what it says itself.
func (u *tenant) writesStatus(before map[string]string) {
	u.t.Helper()
	o := u.object(trafficKind, "way-out", `{`+ratings+shiftTo+`kubeService: `+otherRef+`}]}}}`, "")
	state, said := u.write(o)
	require.Equal(u.t, "INVALID", state, said)
	status := u.names.Replace(`{"status":{"state":"ACCEPTED","lastEnforcedGeneration":1,"destinations":{"ratings-other-OWN.gloo-mesh.":{"state":"ACCEPTED","acceptanceOrder":1}}}}`)
	_, err := u.patch.Resource(snapshot.TrafficPolicy.GroupVersionResource()).Namespace(team).Patch(u.t.Context(), o.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	require.NoError(u.t, err)
	u.settle()
	assert.Equal(u.t, before, u.w.written(u.cluster))
	waittest.NoError(u.t, "serve has written its status over it", func() error {
		if state, is := u.answered(o); state != "INVALID" {
			return fmt.Errorf("it is %s instead of %s", is, said)
		}
		return nil
	})
	u.remove(o)
}

// isForbidden has the tenant write what no API server takes, in its own cluster and in the management cluster.
func (u *tenant) isForbidden() {
	u.t.Helper()
	elsewhere := u.w.as("cluster-1", "nobody")
	for _, text := range forbidden {
		objects, err := kube.Decode([]byte(text))
		require.NoError(u.t, err)
		for _, client := range []*kube.Client{u.as, elsewhere} {
			err := client.Apply(u.t.Context(), objects...)
			require.True(u.t, apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(errors.Unwrap(err)), "%v: %s", err, text)
		}
	}
}

// conflicts has the tenants of three clusters and the management cluster say something else about the service that all have: each tenant's
// word holds in its own cluster, where the management cluster says nothing else.
func (w *tenantWorld) conflicts(tenants []*tenant) {
	w.t.Helper()
	selector := `destinationSelector: [{kubeServiceMatcher: {labels: {app: productpage}}}]`
	for i, u := range tenants {
		u.write(u.object(trafficKind, "product", fmt.Sprintf(`{%s, policy: {requestTimeout: %ds}}`, selector, 11+i), ""))
		younger := u.object(trafficKind, "younger", `{`+selector+`, policy: {requestTimeout: 1s}}`, "")
		u.write(younger)
		// What is in the management cluster is read twice, and said again when it is known to be of a registered one.
		waittest.NoError(w.t, "the older one of the same cluster wins", func() error {
			if _, status := u.answered(younger); !strings.Contains(status, "the older TrafficPolicy product.bookinfo."+u.cluster+" sets policy.requestTimeout differently") {
				return errors.New(status)
			}
			return nil
		})
		u.remove(younger)
	}
	for i, u := range tenants {
		u.has(snapshot.VirtualService, "productpage", fmt.Sprintf(`"timeout":"%ds"`, 11+i))
	}
	// The management cluster decides, though it speaks last, and only where it speaks.
	sandboxtest.Apply(w.t, w.management, []byte(trafficKind+`metadata: {name: product, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {labels: {app: productpage}, clusters: [cluster-2, cluster-3]}}]
  policy: {requestTimeout: 99s}
`))
	for i, u := range tenants {
		if u.cluster == "cluster-1" {
			continue
		}
		u.has(snapshot.VirtualService, "productpage", `"timeout":"99s"`)
		waittest.NoError(w.t, "the one that lost is told", func() error {
			_, status := u.answered(u.object(trafficKind, "product", `{}`, ""))
			if !strings.Contains(status, "TrafficPolicy product.gloo-mesh of the management cluster sets policy.requestTimeout differently") {
				return errors.New(status)
			}
			return nil
		})
		// What it said before does not stay in force beside that of the management cluster.
		waittest.NoError(w.t, "only one decides", func() error {
			if is, _ := u.inside(snapshot.VirtualService, "productpage"); strings.Contains(is, fmt.Sprintf(`"timeout":"%ds"`, 11+i)) {
				return errors.New(is)
			}
			return nil
		})
	}
	for i, u := range tenants {
		if u.cluster == "cluster-1" {
			u.has(snapshot.VirtualService, "productpage", fmt.Sprintf(`"timeout":"%ds"`, 11+i))
			state, status := u.answered(u.object(trafficKind, "product", `{}`, ""))
			assert.Equal(w.t, "ACCEPTED", state, status)
		}
	}
}

// TestPoliciesOfTenants: a user of a cluster writes policies there, which get in force and a status, reach nothing outside of the user's
// namespace, and stay in force while the cluster is away: where serve reaches the cluster itself, and through its agent.
func TestPoliciesOfTenants(t *testing.T) {
	t.Parallel()
	w := newTenantWorld(t)
	first, relayed, direct := w.tenant(t, "cluster-1", "cluster-2"), w.tenant(t, "cluster-2", "cluster-3"), w.tenant(t, "cluster-3", "cluster-2")
	relayed.works(3)
	relayed.tries(1)
	direct.works(4)
	direct.tries(1000)
	w.conflicts([]*tenant{first, relayed, direct})
	w.goesAway(relayed)
}

// goesAway has the agent of a cluster end, and serve start again without it: what the tenant wrote stays in force as it was, and both
// sides' edits are in force when the agent is back.
func (w *tenantWorld) goesAway(u *tenant) {
	t := w.t
	t.Helper()
	u.settle()
	mine, uid := u.inside(snapshot.VirtualService, "ratings")
	before := w.written("")
	w.stopAgent()
	w.listed(string(multiclusterv1alpha1.ConnectionStateLost))
	w.stopServe()
	require.NoError(t, u.as.Apply(t.Context(), u.object(trafficKind, "ratings", `{`+ratings+`, policy: {requestTimeout: 55s}}`, "")))
	w.stopServe = w.serve()
	sandboxtest.Apply(t, w.management, []byte(strings.ReplaceAll(hub, "requestTimeout: 7s", "requestTimeout: 8s")))
	waittest.NoError(t, "serve has written what it can", func() error {
		is, err := w.clients["cluster-3"].Get(t.Context(), snapshot.VirtualService.GroupVersionResource(), "other", "ratings")
		if err == nil && !strings.Contains(fmt.Sprint(is.Object["spec"]), "8s") {
			err = fmt.Errorf("it is %v", is.Object["spec"])
		}
		return err
	})
	after := w.written("")
	for name, version := range before {
		if mine := strings.HasPrefix(name, u.cluster+" "); mine {
			assert.Equal(t, version, after[name], name)
		} else if !strings.Contains(name, " "+team+"/") { // what tenants of other clusters took back goes when it is its turn
			assert.NotEmpty(t, after[name], "%s is gone", name)
		}
	}
	now, same := u.inside(snapshot.VirtualService, "ratings")
	assert.Equal(t, mine, now)
	assert.Equal(t, uid, same)

	w.stopAgent = w.startAgent(w.agentLog)
	u.has(snapshot.VirtualService, "ratings", `"timeout":"55s"`)
	_, same = u.inside(snapshot.VirtualService, "ratings")
	assert.Equal(t, uid, same, "it was there all the time")
	state, status := u.answered(u.object(trafficKind, "ratings", `{}`, ""))
	assert.Equal(t, "ACCEPTED", state, status)
}
