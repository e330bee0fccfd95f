package reading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPlanOfOneSecond: API servers keep the second in which an object was created, so of two of one
// second the name decides which takes precedence.
func TestPlanOfOneSecond(t *testing.T) {
	t.Parallel()
	reading, err := Folder("../../testdata/translate/bookinfo/in")
	require.NoError(t, err)
	older, ok := reading.Input.Find(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "reviews-shift"}).(*networkingv1.TrafficPolicy)
	require.True(t, ok)
	conflicts := func(name string, after time.Duration) (refs []string) {
		t.Helper()
		ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: name}
		policy := &networkingv1.TrafficPolicy{Spec: *older.Spec.DeepCopy()}
		policy.Namespace, policy.Name = ref.Namespace, ref.Name
		policy.Spec.Policy.RequestTimeout.Duration += time.Second
		planned, err := reading.Plan([]Change{{Ref: ref, Object: policy}}, older.CreationTimestamp.Add(after))
		require.NoError(t, err)
		for i := range planned.NewIssues {
			if issue := &planned.NewIssues[i]; issue.Code == snapshot.FieldConflict {
				refs = append(refs, issue.Ref.Name)
			}
		}
		return refs
	}
	assert.Contains(t, conflicts("a-new-one", 900*time.Millisecond), "reviews-shift")
	assert.NotContains(t, conflicts("a-new-one", 900*time.Millisecond), "a-new-one")
	assert.Contains(t, conflicts("the-new-one", 900*time.Millisecond), "the-new-one")
	assert.Contains(t, conflicts("a-new-one", time.Second), "a-new-one")
}

// TestPlanWithout: without a cluster, the other one's routes to it go, and the plan says that
// requests fail.
func TestPlanWithout(t *testing.T) {
	t.Parallel()
	reading, err := Folder("../../testdata/translate/bookinfo/in")
	require.NoError(t, err)
	planned, err := reading.PlanWithout("cluster-2")
	require.NoError(t, err)
	var harm []string
	for i := range planned.Effects {
		if e := &planned.Effects[i]; e.Harm {
			harm = append(harm, e.Text())
		}
	}
	assert.Contains(t, harm, "ratings-bookinfo-cluster-2 from mesh istiod-istio-system-cluster-1: can be called: no longer as ratings.bookinfo.svc.cluster-2.global")
	objects := map[string]explain.ObjectCount{}
	for _, n := range planned.Counts {
		objects[n.Cluster] = n
	}
	assert.Zero(t, objects["cluster-2"].After, "nothing is left there")
	assert.Less(t, objects["cluster-1"].After, objects["cluster-1"].Before)

	planned, err = reading.PlanWithout("cluster-9")
	require.NoError(t, err)
	assert.Nil(t, planned)
}
