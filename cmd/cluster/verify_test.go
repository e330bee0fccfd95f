package cluster

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
)

// TestVerifyTable: which side has what of the objects that differ.
func TestVerifyTable(t *testing.T) {
	t.Parallel()
	two := int64(2)
	v := &multiclusterv1alpha1.Verified{Kinds: 30, Objects: 1200, UnlistedKinds: 1}
	assert.Equal(t, "Cluster west: 1200 objects of 30 kinds were compared; 1 kind could not be listed in the cluster; all sides have the same.", verifiedText("west", v))
	v.Differences = []multiclusterv1alpha1.VerifiedDifference{
		{Kind: "core/v1/Service", Hub: 1, Agent: 2, Cluster: &two, Objects: []multiclusterv1alpha1.VerifiedObject{{Name: "shop/cart", Agent: "6b86b273", Cluster: "6b86b273"}}},
		{Kind: "core/v1/ConfigMap", Hub: 20, Agent: 21, More: 4},
	}
	assert.Contains(t, verifiedText("west", v), "2 kinds differ.")
	var out bytes.Buffer
	require.NoError(t, verifyTable(v).Print(&out))
	assert.Equal(t, `KIND                OBJECT                              HUB   AGENT      CLUSTER
core/v1/Service     all                                 1     2          2
-                   shop/cart                           -     6b86b273   6b86b273
core/v1/ConfigMap   all; 4 more differ than are named   20    21         not listed
`, out.String())
}
