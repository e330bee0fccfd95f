package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestEffectsOfDenials: who may no longer call is told, and so is what nobody may ask for any more.
func TestEffectsOfDenials(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in, policy string
		want       []string
	}{
		"one caller":    {"deny", "cache-not-for-web", []string{"cache-shop-cluster-1: 1 workload may no longer call it: web-front-cluster-1-statefulset"}},
		"nobody at all": {"deny", "nobody-is-meant", nil},
		"some requests": {"deny-methods", "cart-no-deletes", []string{
			"cart-shop-cluster-1: callers could ask for GET,DELETE (anyone); now for GET,DELETE (anyone), but not DELETE,PATCH /admin/* (spiffe://cluster.local/ns/front/sa/web)",
		}},
	} {
		with := load(t, tt.in)
		without := with.Without(snapshot.Ref{Kind: snapshot.AccessPolicy, Namespace: "gloo-mesh", Name: tt.policy})
		var got []string
		for _, e := range explain.Effects(explain.New(engine.Translate(without)), explain.New(engine.Translate(with))) {
			if e.Kind == explain.EffectAccess || e.Kind == explain.EffectLimit {
				got = append(got, e.Text())
				assert.True(t, e.Harm, name)
			}
		}
		assert.Equal(t, tt.want, got, name)
	}
}

// TestADenialIsNarrowed: the smallest change takes one value out of a list, and never the last one, without which the policy would be
// for everything.
func TestADenialIsNarrowed(t *testing.T) {
	t.Parallel()
	web := commonv1.ClusterObjectRef{Name: "web", Namespace: "front", ClusterName: "cluster-1"}
	cart := commonv1.ClusterObjectRef{Name: "cart", Namespace: "shop", ClusterName: "cluster-1"}
	accounts := func(refs ...commonv1.ClusterObjectRef) []commonv1.IdentitySelector {
		return []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{ServiceAccounts: refs}}}
	}
	for name, tt := range map[string]struct {
		spec networkingv1.AccessPolicySpec
		want string
	}{
		"an account":                  {networkingv1.AccessPolicySpec{SourceSelector: accounts(web, cart)}, "remove service account front/web of cluster-1 from spec.sourceSelector"},
		"an account of its own":       {networkingv1.AccessPolicySpec{SourceSelector: append(accounts(web), accounts(cart)...)}, "remove service account front/web of cluster-1 from spec.sourceSelector"},
		"the last account":            {networkingv1.AccessPolicySpec{SourceSelector: accounts(web)}, ""},
		"a method":                    {networkingv1.AccessPolicySpec{AllowedMethods: []string{"GET", "DELETE"}}, "remove DELETE from spec.allowedMethods"},
		"the last method":             {networkingv1.AccessPolicySpec{AllowedMethods: []string{"DELETE"}}, ""},
		"a path":                      {networkingv1.AccessPolicySpec{AllowedPaths: []string{"/a", "/b"}}, "remove /a from spec.allowedPaths"},
		"a path that is not as it is": {networkingv1.AccessPolicySpec{AllowedPaths: []string{"/a*", "/b"}}, ""},
		"everybody":                   {networkingv1.AccessPolicySpec{}, ""},
	} {
		policy := &networkingv1.AccessPolicy{Spec: tt.spec}
		policy.Namespace, policy.Name, policy.Generation, policy.Spec.Action = "gloo-mesh", "denial", 1, networkingv1.AccessDeny
		policy.Spec.DestinationSelector = []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{
			Services: []commonv1.ClusterObjectRef{{Name: "cache", Namespace: "shop", ClusterName: "cluster-1"}},
		}}}
		in := load(t, "deny")
		for _, other := range in.Management.AccessPolicies {
			in = in.Without(snapshot.RefOf(snapshot.AccessPolicy, other))
		}
		in, err := in.With("", policy)
		require.NoError(t, err)
		index := explain.New(engine.Translate(in))
		why := index.Why(index.Find(snapshot.Workload, "web.front.cluster-1")[0], index.Find(snapshot.Destination, "cache.shop.cluster-1")[0],
			explain.Request{Method: "DELETE", Path: "/a"})
		require.Equal(t, explain.Refused, why.Verdict, "%s: %s", name, why.Reason)
		require.Len(t, why.Outcomes, 1)
		assert.Equal(t, []snapshot.Ref{{Kind: snapshot.AccessPolicy, Namespace: "gloo-mesh", Name: "denial"}}, why.Outcomes[0].Denied, name)
		change := why.Outcomes[0].Change
		if tt.want == "" {
			assert.Nil(t, change, name)
			assert.Contains(t, why.Reason, "to allow it, delete that policy", name)
			continue
		}
		require.NotNil(t, change, name)
		assert.Contains(t, change.Text, tt.want, name)
		changed, err := why.Changed(in)
		require.NoError(t, err)
		why.Verify(explain.New(engine.Translate(changed)))
		assert.Empty(t, change.NotEnough, name)
	}
}
