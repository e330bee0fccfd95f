package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPoliciesOfManyWorkloads: a policy that selects more callers than a plan
// names is counted for, and shown by, each of them.
func TestPoliciesOfManyWorkloads(t *testing.T) {
	t.Parallel()
	state := engine.Translate(enginetest.World(enginetest.Size{Services: 150, Clusters: 2, FederateEvery: 10, Policies: 4}))
	require.Greater(t, len(state.Plan.Workloads), 300)
	counted := 0
	for _, p := range state.Plan.Policies {
		if p.WorkloadCount > len(p.Workloads) {
			counted++
		}
	}
	require.NotZero(t, counted, "a policy selects more than it names")
	index := explain.New(state)
	total := 0
	for _, row := range index.Tables(nil).Workloads().Rows {
		item := row.Item.(*explain.WorkloadItem)
		answer := index.Describe(item.Ref).(*explain.Workload)
		assert.Len(t, answer.Policies, item.Policies, item.Ref.Name)
		total += item.Policies
	}
	want := 0
	for _, p := range state.Plan.Policies {
		want += p.WorkloadCount
	}
	assert.Equal(t, want, total)
	policy := index.Describe(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "traffic-00000"}).(*explain.Policy)
	assert.Greater(t, policy.SourceCount, 200)
}
