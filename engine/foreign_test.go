package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTakenNamesAreFoundAgain: edits of what users wrote and of policies change which generated objects have no place, and a Translator
// that saw them says the same as one that did not.
func TestTakenNamesAreFoundAgain(t *testing.T) {
	t.Parallel()
	in, _, err := offline.Load(offline.Dir("../testdata/world/names-taken/in"))
	require.NoError(t, err)
	names := func(out *snapshot.Output) (names []string) {
		for _, ref := range out.Foreign {
			names = append(names, ref.String())
		}
		return names
	}
	translator := engine.New(engine.Options{})
	edited := func(edit func(*snapshot.Input)) []string {
		next := *in
		next.Clusters = append([]*snapshot.Cluster(nil), in.Clusters...)
		edit(&next)
		in = &next
		state, fresh := translator.Translate(in), engine.Translate(in)
		require.Equal(t, fresh.Output.Issues, state.Output.Issues)
		require.Equal(t, fresh.Output.Statuses.Slice(), state.Output.Statuses.Slice())
		assert.Equal(t, names(fresh.Output), names(state.Output))
		for o := range state.Output.Written {
			assert.NotContains(t, names(state.Output), o.Ref.String())
		}
		return names(state.Output)
	}
	services := in.Clusters[0].OfMeshes[snapshot.VirtualService]
	list := func(of []snapshot.APIObject) func(*snapshot.Input) {
		return func(i *snapshot.Input) {
			c := *i.Clusters[0]
			c.OfMeshes[snapshot.VirtualService] = of
			i.Clusters[0] = &c
		}
	}
	policies := in.Management.TrafficPolicies
	manage := func(of []*networkingv1.TrafficPolicy) func(*snapshot.Input) {
		return func(i *snapshot.Input) {
			m := *i.Management
			m.TrafficPolicies = of
			i.Management = &m
		}
	}
	const rule, basket, cart = "DestinationRule cluster-1/shop/cart", "VirtualService cluster-1/shop/basket", "VirtualService cluster-1/shop/cart"
	assert.Equal(t, []string{rule, basket, cart}, edited(func(*snapshot.Input) {}))
	assert.Equal(t, []string{rule}, edited(list(nil)))
	assert.Equal(t, []string{rule, basket, cart}, edited(list(services)))
	assert.Empty(t, edited(manage(nil)))
	assert.Equal(t, []string{rule, basket, cart}, edited(manage(policies)))
	ours := services[0].DeepCopyObject().(*istionetworkingv1.VirtualService)
	ours.Labels = map[string]string{snapshot.NetworkingOwnerLabel: in.Management.Namespace, snapshot.ClusterLabel: "cluster-1"}
	assert.Equal(t, []string{rule, cart}, edited(list([]snapshot.APIObject{ours, services[1]})))
	sunk := edited(func(i *snapshot.Input) {
		i.Failures = []snapshot.Failure{{Ref: snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "cluster-1", Namespace: "shop", Name: "cart"}, Reason: snapshot.Reason{Code: snapshot.ForeignObject, What: "said by a sink"}}}
	})
	assert.Equal(t, []string{rule, cart}, sunk)
	said := 0
	for _, issue := range engine.Translate(in).Output.Issues {
		if issue.Code == snapshot.ForeignObject && issue.Ref.Name == "cart" && issue.Ref.Kind == snapshot.VirtualService {
			assert.Equal(t, "said by a sink", issue.Message)
			said++
		}
	}
	assert.Equal(t, 1, said)
}
