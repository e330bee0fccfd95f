package reading

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestOutcomeOfEachKind: who creates an object hears what became of it, whatever its kind: there is an outcome to wait for, or nobody waits.
func TestOutcomeOfEachKind(t *testing.T) {
	t.Parallel()
	seen := map[snapshot.Kind]bool{}
	for _, dir := range []string{"bookinfo", "service-dependencies", "failover-static"} {
		in, _, err := offline.Load(offline.Dir("../../testdata/translate/" + dir + "/in"))
		require.NoError(t, err)
		index := explain.New(engine.Translate(in))
		for ref := range in.Objects {
			if ref.Cluster != "" || ref.Kind.Info().Access&snapshot.WriteStatus == 0 || ref.Kind.Info().Access&snapshot.Write != 0 {
				continue
			}
			switch ref.Kind {
			case snapshot.Settings, snapshot.KubernetesCluster:
				continue // nobody creates them by questions
			}
			out := outcome(index, ref)
			if assert.NotNil(t, out, "%s: nothing to wait for", ref) {
				assert.NotEmpty(t, out.State, ref)
				seen[ref.Kind] = true
			}
		}
	}
	for _, k := range []snapshot.Kind{snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualDestination, snapshot.ServiceDependency} {
		assert.True(t, seen[k], "no case has a %s", k)
	}
	record := snapshot.Ref{Kind: snapshot.AccessLogRecord, Namespace: "a", Name: "b"}
	issues := []snapshot.Issue{{Ref: record, Message: "it has no effect"}}
	assert.Equal(t, "It is written: it has no effect.", unjudged(issues, record).Text())
	assert.Equal(t, "`meshctl serve` writes no status of objects of this kind.", unjudged(nil, record).Text())
}
