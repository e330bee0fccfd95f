package apply_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTheWriterDatesConditions: the time of a condition is when its status changed, as far as the API server knows; it stays when
// anything else changes, for other servers, too, and is no difference.
func TestTheWriterDatesConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, stop := w.run()
	sink.Set("", w.config)
	w.user(snapshot.AccessPolicy, "open", nil, map[string]any{})
	says := func(generation int64, ready, accepted metav1.ConditionStatus) *snapshot.Output {
		out := output([]string{one})
		out.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.AccessPolicy, "open", &networkingv1.AccessPolicyStatus{
			ObservedGeneration: generation, Conditions: []metav1.Condition{
				{Type: "Accepted", Status: accepted, Reason: "Accepted", ObservedGeneration: generation},
				{Type: "Ready", Status: ready, Reason: "Ready", ObservedGeneration: generation},
			},
		})})
		return out
	}
	times := func() (accepted, ready time.Time) {
		list, ok := nested(t, w.get(snapshot.AccessPolicy, "open"), "status", "conditions").([]any)
		require.True(t, ok)
		require.Len(t, list, 2)
		for i, into := range []*time.Time{&accepted, &ready} {
			c, ok := list[i].(map[string]any)
			require.True(t, ok)
			text, _ := c["lastTransitionTime"].(string)
			var err error
			*into, err = time.Parse(time.RFC3339, text)
			require.NoError(t, err)
		}
		return accepted, ready
	}
	before := time.Now().Truncate(time.Second)
	sink.apply(says(1, metav1.ConditionFalse, metav1.ConditionTrue))
	first, ready := times()
	assert.Equal(t, first, ready)
	assert.False(t, first.Before(before) || first.After(time.Now()), "now")

	// As if all that had been written long ago.
	long := "2001-02-03T04:05:06Z"
	_, err := w.of(snapshot.AccessPolicy).Patch(t.Context(), "open", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/status/conditions/0/lastTransitionTime","value":"`+long+`"},{"op":"replace","path":"/status/conditions/1/lastTransitionTime","value":"`+long+`"}]`),
		metav1.PatchOptions{FieldManager: "x"}, "status")
	require.NoError(t, err)
	ago, err := time.Parse(time.RFC3339, long)
	require.NoError(t, err)
	patched := w.get(snapshot.AccessPolicy, "open").GetResourceVersion()
	stop()
	sink, _ = w.run()
	sink.Set("", w.config)
	sink.apply(says(1, metav1.ConditionFalse, metav1.ConditionTrue))
	assert.Equal(t, patched, w.get(snapshot.AccessPolicy, "open").GetResourceVersion(), "a time is no difference")

	sink.apply(says(2, metav1.ConditionTrue, metav1.ConditionTrue))
	accepted, ready := times()
	assert.Equal(t, ago, accepted, "it is as it was")
	assert.False(t, ready.Before(before), "it changed now")
}
