package reading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
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
		planned, err := reading.Plan([]explain.Edit{{Ref: ref, Object: policy}}, older.CreationTimestamp.Add(after))
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

// TestPlanOfADeregistration: without the registration of a cluster, the other one's routes to it go, and the
// plan says that requests fail.
func TestPlanOfADeregistration(t *testing.T) {
	t.Parallel()
	ref := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "gloo-mesh", Name: "cluster-2"}
	for name, stored := range map[string]bool{"by its folder": false, "by an object": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reading, err := Folder("../../testdata/translate/bookinfo/in")
			require.NoError(t, err)
			if stored {
				registered := &multiclusterv1alpha1.KubernetesCluster{}
				registered.Namespace, registered.Name = ref.Namespace, ref.Name
				reading.Input, err = reading.Input.With("", registered)
				require.NoError(t, err)
			}
			planned, err := reading.Plan([]explain.Edit{{Ref: ref}}, time.Now())
			require.NoError(t, err)
			assert.Equal(t, []explain.PlannedChange{{Ref: ref, Verb: explain.Deleted}}, planned.Changes)
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
			assert.NotZero(t, objects["cluster-2"].Before)
			assert.Zero(t, objects["cluster-2"].After, "nothing is left there")
			assert.Less(t, objects["cluster-1"].After, objects["cluster-1"].Before)
		})
	}
	t.Run("of another cluster", func(t *testing.T) {
		t.Parallel()
		reading, err := Folder("../../testdata/translate/bookinfo/in")
		require.NoError(t, err)
		other := ref
		other.Name = "cluster-9"
		planned, err := reading.Plan([]explain.Edit{{Ref: other}}, time.Now())
		require.NoError(t, err)
		assert.Equal(t, []explain.PlannedChange{{Ref: other, Verb: explain.Unchanged}}, planned.Changes)
		assert.True(t, planned.Empty())
	})
}
