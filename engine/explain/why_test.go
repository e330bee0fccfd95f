package explain_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhyAgrees asks why of every pair of every case: it agrees with what the pages of both say,
// and what it says would allow a request does.
func TestWhyAgrees(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, name string) {
		t.Helper()
		index := explain.New(engine.Translate(load(t, name)))
		called := append(index.Refs(snapshot.Destination), index.Refs(snapshot.VirtualDestination)...)
		tried := map[string]bool{}
		for _, from := range index.Refs(snapshot.Workload) {
			calls := map[snapshot.Ref]explain.Call{}
			for _, c := range index.Describe(from).(*explain.Workload).Calls {
				calls[c.Destination] = c
			}
			for _, to := range called {
				for _, request := range []explain.Request{{}, {Method: "POST", Path: "/admin?x=y"}} {
					why := index.Why(from, to, request)
					if why == nil {
						assert.Nil(t, index.Describe(from).(*explain.Workload).Mesh, "%s to %s", from, to)
						continue
					}
					wellFormed(t, why)
					agrees(t, why, calls)
					changeAllows(t, name, why, tried)
				}
			}
		}
	})
}

func wellFormed(t *testing.T, why *explain.Why) {
	t.Helper()
	assert.NotEmpty(t, why.Verdict)
	assert.NotEmpty(t, why.Reason, "%s to %s", why.From, why.To)
	fits(t, why.To, why.Page())
	_, err := json.Marshal(why)
	require.NoError(t, err)
}

// agrees compares an answer with what the page of the workload says.
func agrees(t *testing.T, why *explain.Why, calls map[snapshot.Ref]explain.Call) {
	t.Helper()
	about := why.From.String() + " to " + why.To.String()
	if why.To.Kind == snapshot.Destination && why.Host != "" {
		assert.Equal(t, calls[why.To].Host, why.Host, about)
	}
	for _, o := range why.Outcomes {
		if why.To.Kind != snapshot.Destination || o.Destination.Kind != snapshot.Destination {
			continue
		}
		call, known := calls[o.Destination]
		if !known {
			continue // a service behind a VirtualDestination
		}
		if o.Verdict == explain.Allowed {
			assert.True(t, call.Allowed, "%s ends at %s", about, o.Destination)
		}
		for _, ref := range o.By {
			assert.Contains(t, call.Policies, ref, "%s ends at %s", about, o.Destination)
		}
		for _, ref := range o.Denied {
			assert.True(t, call.Allowed || slices.Contains(call.Denied, ref), "%s ends at %s, denied by %s", about, o.Destination, ref)
		}
		if !call.Allowed {
			assert.NotEqual(t, explain.Allowed, o.Verdict, "%s ends at %s", about, o.Destination)
		}
	}
}

// changeAllows makes the change, and asks again.
func changeAllows(t *testing.T, name string, why *explain.Why, tried map[string]bool) {
	t.Helper()
	const enough = 20 // each is a translation
	if len(why.Outcomes) != 1 || why.Outcomes[0].Change == nil || tried[why.Outcomes[0].Change.Text] || len(tried) == enough {
		return
	}
	change := why.Outcomes[0].Change
	tried[change.Text] = true
	changed, err := why.Changed(load(t, name))
	require.NoError(t, err)
	if changed == nil {
		assert.Contains(t, change.Text, "TLS mode")
		return
	}
	why.Verify(explain.New(engine.Translate(changed)))
	switch {
	case name == "pods-shared" || name == "osm-pods-shared": // the policies on other services have to allow it, too
	case strings.HasPrefix(name, "osm"): // what the mesh cannot express is refused
	default:
		assert.Empty(t, change.NotEnough, "%s to %s: %s", why.From, why.To, change.Text)
	}
}

// TestWhyVirtualIdentity: the TLS mode that a TrafficPolicy sets on a service does not hold for those
// who call it by the name of a VirtualDestination; that of the Settings does.
func TestWhyVirtualIdentity(t *testing.T) {
	t.Parallel()
	in := load(t, "tls-without-identity")
	name := metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "cart-one", Generation: 1}
	in, err := in.With("", &enterprisev1beta1.VirtualDestination{ObjectMeta: name, Spec: enterprisev1beta1.VirtualDestinationSpec{
		Hostname: "cart.global", Port: &enterprisev1beta1.VirtualDestinationPort{Number: 9080},
		VirtualMesh: &commonv1.ObjectRef{Namespace: "gloo-mesh", Name: "virtual-mesh"},
		Static: &enterprisev1beta1.StaticDestinations{Destinations: []enterprisev1beta1.BackingDestination{
			{KubeService: &commonv1.ClusterObjectRef{Namespace: "shop", Name: "cart", ClusterName: "cluster-1"}},
		}},
	}})
	require.NoError(t, err)
	index := explain.New(engine.Translate(in))
	from, to := index.Find(snapshot.Workload, "web.front.cluster-1"), index.Find(snapshot.VirtualDestination, "cart-one")
	require.Len(t, from, 1)
	require.Len(t, to, 1)

	direct := index.Why(from[0], index.Find(snapshot.Destination, "cart.shop.cluster-1")[0], explain.Request{})
	assert.Equal(t, explain.Refused, direct.Verdict, direct.Reason)
	assert.Empty(t, direct.Outcomes[0].Hops[0].Identity)
	virtual := index.Why(from[0], to[0], explain.Request{})
	assert.Equal(t, explain.Allowed, virtual.Verdict, virtual.Reason)
	assert.NotEmpty(t, virtual.Outcomes[0].Hops[0].Identity)

	in, err = in.With("", &settingsv1.Settings{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "settings", Generation: 1}, Spec: settingsv1.SettingsSpec{
		Mtls: &networkingv1.MTLS{Istio: &networkingv1.IstioMTLS{TlsMode: networkingv1.TLSModeDisable}},
	}})
	require.NoError(t, err)
	plain := explain.New(engine.Translate(in)).Why(from[0], to[0], explain.Request{})
	assert.Equal(t, explain.Refused, plain.Verdict, plain.Reason)
	assert.Contains(t, plain.Reason, "as Settings gloo-mesh/settings sets TLS mode DISABLE")
	assert.Empty(t, plain.Outcomes[0].Hops[0].Identity)
}

// TestWhyOrigin: callers' proxies refuse requests of other origins that a CSRF check does not allow,
// whatever the AccessPolicies say.
func TestWhyOrigin(t *testing.T) {
	t.Parallel()
	in := load(t, "route-filters")
	post := explain.Request{Method: "POST", Path: "/orders", Headers: map[string]string{"origin": "http://evil.example"}}
	why := func(in *snapshot.Input, request explain.Request) *explain.Why {
		index := explain.New(engine.Translate(in))
		return index.Why(index.Find(snapshot.Workload, "cart-v1.shop.cluster-1")[0], index.Find(snapshot.Destination, "cart.shop.cluster-1")[0], request)
	}
	some := why(in, post)
	assert.Equal(t, explain.Partly, some.Verdict)
	assert.Equal(t, "the CSRF check of TrafficPolicy gloo-mesh/csrf refuses 12.5% of the requests (status 403), as its header origin names evil.example; allow it in spec.policy.csrf.additionalOrigins", some.Reason)
	assert.Equal(t, explain.Allowed, why(in, explain.Request{Method: "GET", Path: "/orders", Headers: post.Headers}).Verdict)

	with := func(change func(*networkingv1.Policy)) *snapshot.Input {
		policy, ok := in.Find(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "csrf"}).DeepCopyObject().(*networkingv1.TrafficPolicy)
		require.True(t, ok)
		policy.Spec.Policy.Csrf.Percentage = nil
		change(policy.Spec.Policy)
		changed, err := in.With("", policy)
		require.NoError(t, err)
		return changed
	}
	all := why(with(func(*networkingv1.Policy) {}), post)
	assert.Equal(t, explain.Refused, all.Verdict)
	assert.Contains(t, all.Reason, "refuses all requests (status 403)")
	for name, change := range map[string]func(*networkingv1.Policy){
		"it only counts": func(p *networkingv1.Policy) { p.Csrf.FilterEnabled = false },
		"it is allowed":  func(p *networkingv1.Policy) { p.Csrf.AdditionalOrigins[0].Exact = "evil.example" },
	} {
		assert.Equal(t, explain.Allowed, why(with(change), post).Verdict, name)
	}
	abort := func(percentage *float64) *explain.Why {
		return why(with(func(p *networkingv1.Policy) {
			p.FaultInjection = &networkingv1.FaultInjection{Abort: &networkingv1.Abort{HttpStatus: 418}, Percentage: percentage}
			p.Csrf.FilterEnabled = false
		}), post)
	}
	aborted, quarter := abort(nil), 25.0
	assert.Equal(t, explain.Unreachable, aborted.Verdict, "the abort is first")
	assert.Equal(t, "TrafficPolicy gloo-mesh/csrf lets the proxies of the callers answer all requests with status 418 themselves", aborted.Reason)
	assert.Empty(t, aborted.Outcomes)
	partly := abort(&quarter)
	assert.Equal(t, explain.Partly, partly.Verdict)
	assert.Contains(t, partly.Reason, "answer 25% of the requests with status 418")
}

// TestWhyNoPods: without pods, nobody refuses requests, and they fail all the same.
func TestWhyNoPods(t *testing.T) {
	t.Parallel()
	cart := commonv1.ClusterObjectRef{Namespace: "shop", Name: "cart", ClusterName: "cluster-1"}
	in, err := load(t, "tls-without-identity").With("", &networkingv1.TrafficPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "to-none", Generation: 1},
		Spec: networkingv1.TrafficPolicySpec{
			DestinationSelector: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{cart}}}},
			Policy: &networkingv1.Policy{TrafficShift: &networkingv1.MultiDestination{Destinations: []networkingv1.WeightedDestination{{
				KubeService: &networkingv1.KubeDestination{Namespace: cart.Namespace, Name: cart.Name, ClusterName: cart.ClusterName, Subset: map[string]string{"version": "none"}},
			}}}},
		},
	})
	require.NoError(t, err)
	index := explain.New(engine.Translate(in))
	to := index.Find(snapshot.Destination, "cart.shop.cluster-1")[0]
	why := index.Why(index.Find(snapshot.Workload, "web.front.cluster-1")[0], to, explain.Request{})
	assert.Equal(t, explain.Unreachable, why.Verdict)
	assert.Equal(t, "no pod of cart-shop-cluster-1, version-none is ready, and one would refuse it: the callers present no identity, "+
		"as TrafficPolicy gloo-mesh/plain-text sets TLS mode DISABLE, and no policy on cart-shop-cluster-1 is for anyone", why.Reason)
	assert.NotNil(t, why.Outcomes[0].Change)
}
