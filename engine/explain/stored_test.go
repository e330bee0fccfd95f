package explain_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// written is an Input whose objects have the statuses that a server wrote.
func written(t *testing.T, in *snapshot.Input, server *snapshot.State) *snapshot.Input {
	t.Helper()
	for s := range server.Output.Statuses.All() {
		o := in.Find(s.Ref)
		if o == nil {
			continue
		}
		edited, ok := o.DeepCopyObject().(snapshot.APIObject)
		require.True(t, ok)
		reflect.ValueOf(snapshot.StatusOf(edited)).Elem().Set(reflect.ValueOf(s.Value).Elem())
		var err error
		in, err = in.With("", edited)
		require.NoError(t, err)
	}
	return in
}

// edit is an Input with another version of a TrafficPolicy.
func edit(t *testing.T, in *snapshot.Input, name string, change func(*networkingv1.TrafficPolicy)) *snapshot.Input {
	t.Helper()
	o, ok := in.Find(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: name}).DeepCopyObject().(*networkingv1.TrafficPolicy)
	require.True(t, ok)
	o.Generation++
	change(o)
	out, err := in.With("", o)
	require.NoError(t, err)
	return out
}

// TestStoredRefusal: a server that reads the clusters, and runs with the flag,
// refuses policies with which hand-written objects intersect. Who reads the
// management plane alone says so, and what it would have said.
func TestStoredRefusal(t *testing.T) {
	t.Parallel()
	server := engine.Translate(load(t, "hand-written-refused"))
	require.True(t, server.Input.RefuseIntersecting)
	in := written(t, stored(server), server)
	in.Version = "v2"
	index := explain.NewStored(engine.Translate(in))

	policy := describe[*explain.Policy](t, index, snapshot.TrafficPolicy, "reviews-shift")
	assert.Equal(t, commonv1.ApprovalStateInvalid, policy.State)
	require.NotNil(t, policy.Stored)
	assert.Equal(t, "the server also reads the registered clusters, which were not read here", policy.Stored.Why)
	assert.EqualValues(t, 1, policy.Stored.Generation)
	assert.Equal(t, []explain.Difference{
		{Field: "state", Stored: "INVALID", WouldBe: "ACCEPTED"},
		{Field: "state", On: "reviews-bookinfo-cluster-1.gloo-mesh", Stored: "INVALID", WouldBe: "ACCEPTED"},
	}, policy.Stored.Differences)
	require.Len(t, policy.Targets, 1)
	target := policy.Targets[0]
	assert.Equal(t, "INVALID", target.State)
	assert.Equal(t, "ACCEPTED", target.WouldBe)
	require.NotEmpty(t, target.Issues)
	assert.Equal(t, snapshot.StatusDiffers, target.Issues[0].Code)
	assert.Contains(t, target.Issues[0].Message, "the server rejects it: the hand-written VirtualService cluster-1/bookinfo/my-reviews")
	assert.Equal(t, policy.Stored.Why, target.Issues[0].Hint)

	// The destination and the list of problems say the same.
	reviews := describe[*explain.Destination](t, index, snapshot.Destination, "reviews-bookinfo-cluster-1")
	assert.Contains(t, reviews.Issues, target.Issues[0])
	assert.Contains(t, index.Issues(), target.Issues[0])
	require.NotNil(t, reviews.Stored)
	assert.Contains(t, reviews.Stored.Differences, explain.Difference{Field: "appliedTrafficPolicies", WouldBe: "reviews-shift.gloo-mesh (generation 1)"})

	page := policy.Page()
	assert.Equal(t, "Stored status", page.Sections[1].Title)
	assert.Equal(t, []string{"state", "", "INVALID", "ACCEPTED"}, page.Sections[1].Rows[0])
	assert.Equal(t, "INVALID (would be ACCEPTED)", page.Sections[2].Rows[0][2])

	// Who reads the clusters as the server does comes to the same.
	live := explain.NewLive(engine.Translate(written(t, server.Input, server)))
	policy = describe[*explain.Policy](t, live, snapshot.TrafficPolicy, "reviews-shift")
	assert.Equal(t, commonv1.ApprovalStateInvalid, policy.State)
	assert.Nil(t, policy.Stored)
	assert.Empty(t, policy.Targets[0].WouldBe)
	assert.NotContains(t, codes(live.Issues()), snapshot.StatusDiffers)
	for _, kind := range explain.Kinds() {
		for _, ref := range live.Refs(kind) {
			data, err := json.Marshal(live.Describe(ref))
			require.NoError(t, err)
			assert.NotContains(t, string(data), `"stored"`, ref)
		}
	}
}

func codes(issues []snapshot.Issue) []snapshot.Code {
	var out []snapshot.Code
	for _, issue := range issues {
		out = append(out, issue.Code)
	}
	return out
}

// TestStoredLastGood: an edit that no server has processed is told from what is
// in force, and so is the last good spec of one that it refused.
func TestStoredLastGood(t *testing.T) {
	t.Parallel()
	const name = "edited"
	state := engine.Translate(load(t, "last-good"))
	in := written(t, state.Input, state)
	policy := describe[*explain.Policy](t, explain.NewLive(engine.Translate(in)), snapshot.TrafficPolicy, name)
	assert.Equal(t, commonv1.ApprovalStateInvalid, policy.State)
	assert.Nil(t, policy.Stored, "the same follows now")
	assert.True(t, slices.ContainsFunc(policy.Targets, func(t explain.PolicyTarget) bool { return t.LastGood && t.State == "INVALID" }))

	// Fixed, but no server runs.
	fixed := edit(t, in, name, func(p *networkingv1.TrafficPolicy) {
		p.Spec.Policy = &networkingv1.Policy{Retries: &networkingv1.RetryPolicy{Attempts: 2}}
	})
	policy = describe[*explain.Policy](t, explain.NewLive(engine.Translate(fixed)), snapshot.TrafficPolicy, name)
	assert.Equal(t, commonv1.ApprovalStatePending, policy.State)
	require.NotNil(t, policy.Stored)
	assert.Equal(t, "the server has not processed generation 3 of it; check that it runs: meshctl serve", policy.Stored.Why)
	assert.Contains(t, policy.Stored.Differences, explain.Difference{Field: "state", Stored: "INVALID", WouldBe: "ACCEPTED"})
	assert.NotContains(t, codes(policy.Issues), snapshot.StatusDiffers, "an edit that waits is no problem yet")
}

// TestStoredWhy: what is known of the server says why its statuses differ.
func TestStoredWhy(t *testing.T) {
	t.Parallel()
	server := engine.Translate(load(t, "hand-written-refused"))
	without := *server.Input
	without.RefuseIntersecting = false
	in := written(t, &without, server)
	why := func(in *snapshot.Input) string {
		policy := describe[*explain.Policy](t, explain.NewLive(engine.Translate(in)), snapshot.TrafficPolicy, "reviews-shift")
		require.NotNil(t, policy.Stored)
		return policy.Stored.Why
	}
	assert.Equal(t, "the server has not processed what was read here; if it does not change, check that it runs: meshctl serve", why(in))
	registered, err := in.With("", &multiclusterv1alpha1.KubernetesCluster{Status: multiclusterv1alpha1.KubernetesClusterStatus{
		Server: &multiclusterv1alpha1.Server{Version: "v1"},
		Status: []multiclusterv1alpha1.ClusterStatus{{State: multiclusterv1alpha1.ClusterStateFailed, Message: "unreachable: no answer",
			Reasons: []multiclusterv1alpha1.ClusterReason{{Code: string(snapshot.ClusterFrozen), What: "no answer"}}}},
	}})
	require.NoError(t, err)
	renamed := *registered
	renamed.Version = "v2"
	assert.Equal(t, "the server is meshctl v1, this is v2", why(&renamed))
	registration := registered.Management.KubernetesClusters[0].DeepCopy()
	registration.Namespace, registration.Name = "gloo-mesh", "cluster-2"
	frozen, err := renamed.With("", registration)
	require.NoError(t, err)
	assert.Equal(t, "the server is meshctl v1, this is v2; the server cannot read cluster cluster-2 (no answer)", why(frozen))
}

// TestStoredDeparted: a Service that is gone restricts callers of another one with the same pods no more, as the server knows, whose
// Destination of it stays for a while. Who reads the management plane alone does not know which of the two to believe.
func TestStoredDeparted(t *testing.T) {
	t.Parallel()
	all := engine.Translate(load(t, "../world/shared-pods"))
	server := engine.Translate(all.Input.Without(snapshot.Ref{Kind: snapshot.Service, Cluster: "cluster-1", Namespace: "shop", Name: "cart-admin"}))
	ask := func(x *explain.Index, to string) *explain.Why {
		return x.Why(x.Find(snapshot.Workload, "web.front.cluster-1")[0], x.Find(snapshot.Destination, to)[0], explain.Request{})
	}
	assert.Equal(t, explain.Refused, ask(explain.New(all), "cart.shop.cluster-1").Verdict)
	assert.Equal(t, explain.Allowed, ask(explain.New(server), "cart.shop.cluster-1").Verdict)

	gone := explain.NewStored(engine.Translate(written(t, stored(all), server)))
	why := ask(gone, "cart.shop.cluster-1")
	assert.Equal(t, explain.Unknown, why.Verdict)
	assert.Contains(t, why.Reason, "the server does not count cart-admin-shop-cluster-1 among the services of AccessPolicy gloo-mesh/")
	assert.Contains(t, why.Reason, "its pods are also those of cart-shop-cluster-1")
	assert.Equal(t, explain.Unknown, ask(gone, "cart-admin.shop.cluster-1").Verdict)
	assert.Contains(t, codes(gone.Issues()), snapshot.StatusDiffers)

	there := explain.NewStored(engine.Translate(written(t, stored(all), all)))
	assert.Equal(t, explain.Refused, ask(there, "cart.shop.cluster-1").Verdict)
	assert.NotContains(t, codes(there.Issues()), snapshot.StatusDiffers)
}
