package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTheOlderSidecarApplies: of a generated Sidecar and one that users wrote for the same pods, the mesh uses the older one.
func TestTheOlderSidecarApplies(t *testing.T) {
	t.Parallel()
	input, _, err := offline.Load(offline.Dir("../../testdata/world/dependency-egress/in"))
	require.NoError(t, err)
	state := engine.Translate(input)
	for name, c := range map[string]struct {
		// generated is its age beside that of the user's.
		generated time.Duration
		verdict   explain.Verdict
	}{
		"the generated one is older": {-time.Hour, explain.Unreachable},
		"that of the user is older":  {time.Hour, explain.Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := explain.New(state)
			created := map[snapshot.Ref]time.Time{}
			for o := range state.Output.Objects {
				created[o.Ref] = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Add(c.generated)
			}
			index.Observe(nil, false, &snapshot.Observed{Created: created})
			why := index.Why(index.Find(snapshot.Workload, "web-front-cluster-2-statefulset")[0], index.Find(snapshot.Destination, "cart-shop-cluster-1")[0], explain.Request{})
			require.NotNil(t, why)
			assert.Equal(t, c.verdict, why.Verdict, why.Reason)
			assert.NotContains(t, why.Reason, "not known")
		})
	}
}
