package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestDiff: what differs between two recordings, of the same objects and of others.
func TestDiff(t *testing.T) {
	t.Parallel()
	translator := engine.New(engine.Options{})
	index := func(in *snapshot.Input) *explain.Index { return explain.New(translator.Translate(in)) }
	for _, name := range []string{"bookinfo", "external", "failover-localized", "frozen", "mirrors", "roots-differ", "service-dependencies"} {
		same, err := explain.Diff(index(load(t, name)), index(load(t, name)))
		require.NoError(t, err)
		assert.True(t, same.Empty(), "%s: the same objects, read twice: %+v", name, same)
	}

	before, after := load(t, "bookinfo"), load(t, "bookinfo")
	lost, gone := after.Clusters[1], before.Clusters[0].Name
	lost.Sync, lost.Reason = snapshot.Stale, "no answer"
	after.Management.TrafficPolicies = after.Management.TrafficPolicies[1:]
	deleted := snapshot.RefOf(snapshot.TrafficPolicy, before.Management.TrafficPolicies[0])
	after.Management.AccessPolicies[0].Labels = map[string]string{"team": "a"}
	after.Management.AccessPolicies[0].ResourceVersion = "7"
	d, err := explain.Diff(index(before), index(after))
	require.NoError(t, err)
	assert.Equal(t, []explain.FleetChange{{Cluster: lost.Name, Change: explain.Lost, Reason: "no answer"}}, d.Fleet)
	assert.Equal(t, []explain.PlannedChange{
		{Ref: deleted, Verb: explain.Deleted},
		{Ref: snapshot.RefOf(snapshot.AccessPolicy, after.Management.AccessPolicies[0]), Verb: explain.Changed},
	}, d.Changes)
	assert.NotEmpty(t, d.Effects)
	assert.False(t, d.Empty())

	back, err := explain.Diff(index(after), index(before))
	require.NoError(t, err)
	assert.Equal(t, []explain.FleetChange{{Cluster: lost.Name, Change: explain.Found}}, back.Fleet)
	assert.Equal(t, explain.Created, back.Changes[0].Verb)

	fewer := load(t, "bookinfo")
	fewer.Clusters = fewer.Clusters[1:]
	d, err = explain.Diff(index(before), index(fewer))
	require.NoError(t, err)
	assert.Equal(t, []explain.FleetChange{{Cluster: gone, Change: explain.Deregistered}}, d.Fleet)
	d, err = explain.Diff(index(fewer), index(before))
	require.NoError(t, err)
	assert.Equal(t, []explain.FleetChange{{Cluster: gone, Change: explain.Registered}}, d.Fleet)
}
