package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/explain"
)

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
