package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGroupsOfIssues: what is wrong with one object stands in one place, and each sentence once.
func TestGroupsOfIssues(t *testing.T) {
	t.Parallel()
	policy := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "fast"}
	mesh := snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: "all"}
	on := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.Destination, Namespace: "gloo-mesh", Name: name}
	}
	conflict := snapshot.Errorf(snapshot.FieldConflict, "change one", "an older one sets it")
	unready := snapshot.Errorf(snapshot.NoEndpoints, "start its pods", "half of the requests fail")
	down := snapshot.Errorf(snapshot.GatewayNotReady, "start it", "the gateway has no ready pod")
	leftover := snapshot.Issue{Severity: snapshot.Info, Code: snapshot.Drifted, Message: "nothing wants it"}
	noted := snapshot.Issue{Severity: snapshot.Info, Code: snapshot.MeshVersionUnknown, Message: "no version"}
	began := metav1.NewTime(time.Date(2026, 1, 1, 18, 50, 3, 0, time.UTC))
	x := New(&snapshot.State{
		Input: &snapshot.Input{Management: &snapshot.Management{VirtualMeshes: []*networkingv1.VirtualMesh{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "all"},
			Status: networkingv1.VirtualMeshStatus{Conditions: []metav1.Condition{
				{Type: "InForce", Status: metav1.ConditionFalse, Reason: string(snapshot.GatewayNotReady), LastTransitionTime: began},
			}},
		}}}},
		Plan: &snapshot.Plan{Policies: []*snapshot.PolicyPlan{{Ref: policy, Verdicts: []snapshot.Verdict{
			{Destination: on("a"), Issues: []snapshot.Issue{conflict}},
			{Destination: on("b"), Accepted: true, Issues: []snapshot.Issue{unready}},
			{Destination: on("c"), Accepted: true},
		}}}},
		Output: &snapshot.Output{},
	})
	groups, passing := GroupIssues(x, []snapshot.Issue{
		conflict.On(policy, on("a")), conflict.On(policy, on("b")), down.On(mesh, snapshot.Ref{}), unready.On(policy, on("b")),
		leftover.On(on("a"), on("a")), leftover.On(on("b"), on("b")), noted, noted,
	})
	assert.Equal(t, 2, passing)
	require.Len(t, groups, 3)
	assert.Equal(t, "TrafficPolicy gloo-mesh/fast: in force on 1 of 3", groups[0].Title())
	require.Len(t, groups[0].Issues, 2)
	assert.Equal(t, "TrafficPolicy gloo-mesh/fast on a, b: an older one sets it (FieldConflict)", groups[0].Issues[0].Summary())
	assert.Equal(t, "b", groups[0].Issues[1].OnText())
	assert.Equal(t, "VirtualMesh gloo-mesh/all: the gateway has no ready pod; since 2026-01-01T18:50:03Z (GatewayNotReady)", groups[1].Issues[0].Summary())
	assert.Equal(t, "no version (MeshVersionUnknown)", groups[2].Issues[0].Summary())

	assert.Equal(t, OK, worstLevel([]snapshot.Issue{leftover}), "what passes by itself is not the first thing to see")
	assert.Equal(t, Info, worstLevel([]snapshot.Issue{noted, leftover}))
	var row Row
	row.setIssue([]snapshot.Issue{leftover, noted})
	assert.Equal(t, "no version", row.Note)
	counted := countPassing([]Problem{{Issue: conflict}, {Issue: leftover}, {Issue: leftover}})
	require.Len(t, counted, 2)
	assert.Equal(t, "and 2 infos about what passes by itself", counted[1].Message)
}

// TestTargetsAreBounded: a line names a few targets and counts the others.
func TestTargetsAreBounded(t *testing.T) {
	t.Parallel()
	m := MergedIssue{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		m.On = append(m.On, snapshot.Ref{Name: name})
	}
	assert.Equal(t, "a, b, c and 2 more targets", m.OnText())
}
